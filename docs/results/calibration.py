"""How often signs were right: python docs/results/calibration.py WORDS FILE…

FILEs are what `dr3 select --measure … --json` and signs_from_evidence.py print.
WORDS name the runs ("16 runs of DQN on gridworlds"). Prints what src/dr3/diagnostics/calibration.json holds: of members
that showed a sign first at some checkpoint, how many then lost a tenth of their return or more; the same of checkpoints
without any; of the members that fell, how many had shown it by then; and of those that never fell, how many ever did.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path


def main(words: str, *files: str) -> None:
    fell, of, shown, fallen, alarmed, stayed = (Counter() for _ in range(6))
    for file in files:
        record = json.loads(Path(file).read_text("utf-8"))
        for name, row in record["verdicts"].items():
            fell[name] += row["dropped"]
            of[name] += row["counted"]
        for name, row in record["recall"].items():
            shown[name] += row["shown"]
            fallen[name] += row["fell"]
        for name, row in record["alarms"].items():
            alarmed[name] += row["shown"]
            stayed[name] += row["stayed"]
    signs = {name: {"fell": fell[name], "of": count} for name, count in of.items() if count}
    quiet = signs.pop("no sign")
    signs.pop("any sign", None)
    recall = {name: {"shown": shown[name], "fell": fallen[name]} for name in signs}
    alarms = {name: {"shown": alarmed[name], "stayed": stayed[name]} for name in signs}
    print(json.dumps({"runs": words, "no sign": quiet, "signs": signs, "recall": recall, "alarms": alarms}, indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
