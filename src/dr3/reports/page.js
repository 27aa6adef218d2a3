// What a picture cannot do alone: say the values under the pointer, and follow a run that is still training.
(() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const element = (name, attributes, space) => {
    const made = space ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const number = (value) => {
    if (value === null) return "–";
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  };
  const curves = () => JSON.parse(document.getElementById("values").textContent);
  let data = curves();

  // --- Values under the pointer, or at the arrow keys' place ---

  const axis = (svg, name) => {
    const [low, high, start, end] = svg.dataset[name].split(" ").map(Number);
    return { low, high, start, end };
  };
  const place = ({ low, high, start, end }, value, log) => {
    const scale = log ? (v) => Math.log10(Math.max(v, low)) : (v) => v;
    return start + ((scale(value) - scale(low)) / (scale(high) - scale(low))) * (end - start);
  };
  const nearest = (steps, wanted) => {
    let best = 0;
    steps.forEach((step, at) => { if (Math.abs(step - wanted) < Math.abs(steps[best] - wanted)) best = at; });
    return best;
  };
  const shown = (group) => document.getElementById(`show-${group}`)?.checked ?? true;

  function clear() {
    document.querySelector(".readout")?.remove();
    document.querySelectorAll(".cursor").forEach((cursor) => cursor.replaceChildren());
  }

  function point(svg, wanted) {
    const figure = svg.closest("figure"), panel = data[figure.dataset.panel];
    const x = axis(svg, "x"), y = axis(svg, "y"), log = "log" in svg.dataset;
    clear();
    const lines = panel.map((line, group) => ({ ...line, group })).filter((line) => line.steps.length && shown(line.group));
    if (!lines.length) return;
    const steps = [...new Set(lines.flatMap((line) => line.steps))].sort((a, b) => a - b);
    const step = steps[nearest(steps, wanted)], across = place(x, step);
    const cursor = svg.querySelector(".cursor");
    cursor.append(element("line", { x1: across, x2: across, y1: y.start, y2: y.end }, SVG));
    const box = element("div", { class: "readout", role: "status" }), table = element("table", {});
    const title = element("b", {});
    title.textContent = `step ${step.toLocaleString("en")}`;
    for (const line of lines) {
      const at = line.steps.indexOf(step);
      if (at < 0 || line.middle[at] === null) continue;
      cursor.append(element("circle", { class: line.colour, cx: across, cy: place(y, line.middle[at], log), r: 4 }, SVG));
      const row = table.insertRow(), name = row.insertCell(), value = row.insertCell();
      name.append(element("span", { class: `swatch ${line.colour}` }), line.name);
      value.textContent = number(line.middle[at]);
      if (line.low[at] !== line.high[at]) {
        const range = element("div", { class: "soft" });
        range.textContent = `${number(line.low[at])} to ${number(line.high[at])}`;
        value.append(range);
      }
    }
    box.append(title, table);
    figure.append(box);
    const picture = svg.getBoundingClientRect(), frame = figure.getBoundingClientRect();
    const left = picture.left - frame.left + (across / svg.viewBox.baseVal.width) * picture.width;
    const side = left + box.offsetWidth + 14 > frame.width ? left - box.offsetWidth - 14 : left + 14;
    box.style.left = `${Math.max(0, Math.min(side, frame.width - box.offsetWidth))}px`;
    box.style.top = `${picture.top - frame.top + 6}px`;
    svg.dataset.step = step;
  }

  const svgOf = (event) => event.target.closest?.("figure svg");
  const follow = (event) => {
    const svg = svgOf(event);
    if (!svg) return;
    const picture = svg.getBoundingClientRect(), x = axis(svg, "x");
    const at = ((event.clientX - picture.left) / picture.width) * svg.viewBox.baseVal.width;
    point(svg, x.low + ((at - x.start) / (x.end - x.start)) * (x.high - x.low));
  };
  document.addEventListener("pointermove", follow);
  document.addEventListener("pointerdown", follow);
  document.addEventListener("pointerout", (event) => {
    const svg = svgOf(event);
    if (svg && event.pointerType === "mouse" && !svg.contains(event.relatedTarget)) clear();
  });
  document.addEventListener("keydown", (event) => {
    const svg = svgOf(event), move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!svg || !move) return;
    const panel = data[svg.closest("figure").dataset.panel];
    const steps = [...new Set(panel.flatMap((line) => line.steps))].sort((a, b) => a - b);
    const now = "step" in svg.dataset ? nearest(steps, Number(svg.dataset.step)) + move : move > 0 ? 0 : steps.length - 1;
    point(svg, steps[Math.max(0, Math.min(steps.length - 1, now))]);
    event.preventDefault();
  });
  document.addEventListener("focusout", (event) => { if (svgOf(event)) clear(); });
  const focusable = () => document.querySelectorAll("figure svg").forEach((svg) => { svg.tabIndex = 0; });
  focusable();

  // --- A run that is still training: parts that changed are put in place; choices and the scroll stay ---

  const every = Number(document.body.dataset.refresh);
  if (!every) return;
  let version = document.body.dataset.version;

  const looks = (page) => page.querySelector("style").textContent + [...page.querySelectorAll("[data-part]")].map((part) => part.dataset.part);

  function put(page) {
    if (looks(page) !== looks(document)) { location.reload(); return; }  // the first page after a waiting one
    const choices = new Map([...document.querySelectorAll("input[id]")].map((box) => [box.id, box.checked]));
    const open = new Set([...document.querySelectorAll("details[open][id]")].map((one) => one.id));
    for (const part of page.querySelectorAll("[data-part]")) {
      const here = document.querySelector(`[data-part="${part.dataset.part}"]`);
      if (here && here.innerHTML !== part.innerHTML) here.innerHTML = part.innerHTML;
    }
    for (const box of document.querySelectorAll("input[id]")) if (choices.has(box.id)) box.checked = choices.get(box.id);
    for (const one of document.querySelectorAll("details[id]")) one.open = open.has(one.id);
    document.title = page.title;
    data = curves();
    focusable();
  }

  async function look() {
    try {
      const now = await (await fetch("version", { cache: "no-store" })).text();
      if (now !== version) {
        const page = new DOMParser().parseFromString(await (await fetch(".", { cache: "no-store" })).text(), "text/html");
        put(page);
        version = page.body.dataset.version;
      }
      document.body.classList.remove("lost");
    } catch {
      document.body.classList.add("lost");
    }
    setTimeout(look, every);
  }
  setTimeout(look, every);
})();
