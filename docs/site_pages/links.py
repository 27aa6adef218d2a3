"""Every link inside the built site leads to a page that is there, and to an anchor on it.

python docs/site_pages/links.py build/site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, which anchors it has, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif tag in ("script", "img", "source", "iframe") and "src" in found:
            self.loads.add(found["src"])
        elif tag == "link" and found.get("rel") == "stylesheet":
            self.loads.add(found.get("href", ""))


def faults(site: Path) -> list[str]:
    """One sentence for each link that leads nowhere, and for whatever a page would fetch from the network."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in sorted(page.links | page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    found.append(f"{where} loads {link} from the network.")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{where} links to {link}, which is not there.")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{where} links to {link}, which has no such anchor.")
    return found


if __name__ == "__main__":
    said = faults(Path(sys.argv[1]).resolve())
    print("\n".join(said))
    raise SystemExit(1 if said else 0)
