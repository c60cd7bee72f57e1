"use strict";
// Everything shown is set as text, never as markup: names come from a table that is not trusted.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const figure = document.getElementById("graph");
  const svg = figure.querySelector("svg");
  const card = document.getElementById("card");
  const nodes = [...svg.querySelectorAll("[data-node]")];
  const edges = [...svg.querySelectorAll("[data-edge]")];
  const items = [...nodes, ...edges];
  const rows = [...document.querySelectorAll("tr[data-edge]")];
  const byId = (id) => document.getElementById(id);
  const on = (id, what, act) => byId(id) && byId(id).addEventListener(what, act);
  const make = (tag, text, kind) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };

  // --- the view: move and zoom by changing the view box -------------------------------------
  const natural = svg.getAttribute("viewBox");
  const [left, top_, wide, high] = natural.split(" ").map(Number);
  const LARGEST = 1.3; // letters of a small graph should not be huge
  let view = { x: left, y: top_, w: wide, h: high };
  const show = () => svg.setAttribute("viewBox", [view.x, view.y, view.w, view.h].map((v) => v.toFixed(2)).join(" "));
  const fit = () => {
    const box = svg.getBoundingClientRect();
    if (!box.width || !box.height) return; // not shown yet, as in a frame that is still hidden: "resize" comes again
    const scale = Math.min(box.width / wide, box.height / high, LARGEST);
    const w = box.width / scale, h = box.height / scale;
    view = { x: left + (wide - w) / 2, y: top_ + (high - h) / 2, w, h };
    show();
  };
  const settle = () => {
    figure.classList.add("live");
    const room = svg.parentElement.clientWidth;
    const scale = Math.min(room / wide, LARGEST);
    svg.style.height = document.fullscreenElement ? "" : `${Math.max(220, Math.min(innerHeight * (wide * high > 4e5 ? 0.82 : 0.75), high * scale))}px`;
    fit();
  };
  const place = (x, y) => new DOMPoint(x, y).matrixTransform(svg.getScreenCTM().inverse());
  const zoom = (factor, at) => {
    const least = wide / 40, most = Math.max(wide, high) * 4;
    const f = Math.min(most / view.w, Math.max(least / view.w, factor));
    const p = at || { x: view.x + view.w / 2, y: view.y + view.h / 2 };
    view = { x: p.x - (p.x - view.x) * f, y: p.y - (p.y - view.y) * f, w: view.w * f, h: view.h * f };
    show();
  };
  const move = (dx, dy) => {
    const unit = svg.getScreenCTM().a;
    view.x -= dx / unit;
    view.y -= dy / unit;
    show();
  };
  const reveal = (item) => {
    const b = item.getBoundingClientRect(), s = svg.getBoundingClientRect();
    if (b.left < s.left || b.right > s.right) move(s.left + s.width / 2 - b.left - b.width / 2, 0);
    if (b.top < s.top || b.bottom > s.bottom) move(0, s.top + s.height / 2 - b.top - b.height / 2);
  };

  // --- pointers: one moves, two zoom, a press without a move selects --------------------------
  const held = new Map();
  let moved = 0;
  const spread = () => {
    const [a, b] = [...held.values()];
    return { gap: Math.hypot(a.x - b.x, a.y - b.y) || 1, x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    if (!held.size) moved = 0;
    held.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  addEventListener("pointermove", (event) => {
    const from = held.get(event.pointerId);
    if (!from) return;
    const before = held.size === 2 ? spread() : null;
    moved += Math.abs(event.clientX - from.x) + Math.abs(event.clientY - from.y);
    held.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (before) {
      const after = spread();
      zoom(before.gap / after.gap, place(after.x, after.y));
    } else if (moved > 4) {
      svg.classList.add("held");
      hide();
      move(event.clientX - from.x, event.clientY - from.y);
    }
  });
  const release = (event) => {
    held.delete(event.pointerId);
    if (!held.size) svg.classList.remove("held");
  };
  addEventListener("pointerup", release);
  addEventListener("pointercancel", release);
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(event.deltaY * (event.deltaMode ? 0.05 : 0.002)), place(event.clientX, event.clientY));
  }, { passive: false });

  // --- the card: what is known about an item ---------------------------------------------------
  let leastWay = byId("way") ? +byId("way").value : 0.5; // an arrow less sure of its direction is shown as a line
  const nameOf = (i) => data.nodes[i].name;
  const list = (title, names) => (names.length ? [make("p", `${title}: ${names.join(", ")}`)] : []);
  const chance = (p) => (p === 0 || p === 1 ? `= ${p}` : p >= 0.995 ? "> 0.99" : p < 0.005 ? "< 0.01" : `= ${p.toFixed(2)}`);
  const sure = (edge) => (edge.direction === null ? 1 : Math.max(edge.direction, 1 - edge.direction));
  const points = (edge) => (edge.directed || edge.turns === true) && sure(edge) >= leastWay;
  const from = (edge) => (!edge.directed && points(edge) && edge.direction < 0.5 ? edge.b : edge.a);
  const to = (edge) => (from(edge) === edge.a ? edge.b : edge.a);
  const between = (edge) => `${nameOf(from(edge))} ${edge.sign ?? (points(edge) ? "→" : "—")} ${nameOf(to(edge))}`;
  const aboutNode = (i) => {
    const pick = (test, other) => data.edges.filter(test).map(other).map(nameOf);
    return [
      make("strong", nameOf(i)),
      make("p", data.nodes[i].about, "soft"),
      ...list("Arrows from", pick((e) => points(e) && to(e) === i, from)),
      ...list("Arrows to", pick((e) => points(e) && from(e) === i, to)),
      ...list(data.edges.some((e) => e.sign) ? "Open or confounded with" : "Undirected with", pick((e) => !points(e) && (e.a === i || e.b === i), (e) => (e.a === i ? e.b : e.a))),
    ];
  };
  const aboutEdge = (i) => {
    const edge = data.edges[i];
    const said = [
      make("strong", between(edge)),
      make("p", `${edge.words ?? (points(edge) ? "directed" : "undirected")}, ${edge.about}`, "soft"),
    ];
    if (edge.says && points(edge)) said.push(make("p", edge.says));
    if (edge.linked !== null) said.push(make("p", `P(edge) ${chance(edge.linked)}`));
    if (edge.direction !== null) said.push(make("p", `P(${nameOf(edge.a)} → ${nameOf(edge.b)}) ${chance(edge.direction)}`));
    said.push(...(edge.effects ?? []).map((text) => make("p", text)));
    const lines = document.createElement("ul");
    lines.append(...edge.evidence.map((text) => make("li", text)));
    said.push(edge.evidence.length ? lines : make("p", "No single decision was recorded for this edge.", "soft"));
    return said;
  };
  const hide = () => { card.hidden = true; };
  const tell = (item) => {
    const { node, edge } = item.dataset;
    card.replaceChildren(...(node === undefined ? aboutEdge(+edge) : aboutNode(+node)));
    card.hidden = false;
    const b = item.getBoundingClientRect(), c = card.getBoundingClientRect(), s = svg.getBoundingClientRect();
    const middle = Math.min(Math.max(b.left + b.width / 2, s.left), s.right);
    const under = Math.min(b.bottom, s.bottom) + 8, over = Math.max(b.top, s.top) - c.height - 8;
    const y = under + c.height < innerHeight ? under : over > 0 ? over : innerHeight - c.height - 8;
    card.style.left = `${Math.max(8, Math.min(innerWidth - c.width - 8, middle - c.width / 2))}px`;
    card.style.top = `${Math.max(8, y)}px`;
  };
  const itemOf = (event) => event.target.closest && event.target.closest("[data-node],[data-edge]");
  svg.addEventListener("pointerover", (event) => {
    const item = itemOf(event);
    if (item && !svg.classList.contains("held")) tell(item);
    else hide();
  });
  svg.addEventListener("pointerleave", hide);
  // On the figure: Chromium makes an svg element with a focus listener a stop for Tab.
  figure.addEventListener("focusin", (event) => {
    const item = itemOf(event);
    if (item && item.matches(":focus-visible")) { reveal(item); tell(item); }
  });
  figure.addEventListener("focusout", hide);
  addEventListener("scroll", hide, { passive: true });

  // --- selection: an item with its parents and children ----------------------------------------
  const clear = () => {
    svg.classList.remove("picked");
    for (const item of items) {
      item.classList.remove("on", "chosen", "parent", "child");
      item.setAttribute("aria-pressed", "false");
    }
  };
  const light = (i) => {
    const { a, b } = data.edges[i];
    for (const item of [edges[i], nodes[a], nodes[b]]) item.classList.add("on");
    if (points(data.edges[i])) { nodes[from(data.edges[i])].classList.add("parent"); nodes[to(data.edges[i])].classList.add("child"); }
  };
  const select = (item) => {
    const again = item.getAttribute("aria-pressed") === "true";
    clear();
    if (again) return;
    svg.classList.add("picked");
    item.classList.add("on");
    item.setAttribute("aria-pressed", "true");
    const i = +(item.dataset.node ?? -1);
    if (i < 0) light(+item.dataset.edge);
    else data.edges.forEach((e, k) => { if ((e.a === i || e.b === i) && !edges[k].classList.contains("off")) light(k); });
    if (i >= 0) { item.classList.remove("parent", "child"); item.classList.add("chosen"); }
  };
  svg.addEventListener("click", (event) => {
    if (moved > 4) return;
    const item = itemOf(event);
    hide();
    if (item) select(item);
    else clear();
  });

  // --- keyboard: one stop for Tab, arrow keys inside -------------------------------------------
  let current = 0;
  const stop = (k) => {
    items[current].setAttribute("tabindex", "-1");
    current = k;
    items[k].setAttribute("tabindex", "0");
  };
  const step = (by) => {
    for (let k = current + by; k >= 0 && k < items.length; k += by) {
      if (!items[k].classList.contains("off")) { stop(k); items[k].focus(); return; }
    }
  };
  if (items.length) stop(0);
  for (const item of items) item.setAttribute("aria-describedby", "card");
  figure.addEventListener("focusin", (event) => { const k = items.indexOf(itemOf(event)); if (k >= 0) stop(k); });
  const keys = {
    ArrowRight: () => step(1), ArrowDown: () => step(1), ArrowLeft: () => step(-1), ArrowUp: () => step(-1),
    Home: () => { stop(0); items[0].focus(); }, End: () => { stop(items.length - 1); items[current].focus(); },
    Enter: () => select(items[current]), " ": () => select(items[current]), Escape: () => { clear(); hide(); },
    "+": () => zoom(0.8), "=": () => zoom(0.8), "-": () => zoom(1.25), 0: fit,
  };
  svg.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });

  // --- controls --------------------------------------------------------------------------------
  on("zoom-in", "click", () => zoom(0.8));
  on("zoom-out", "click", () => zoom(1.25));
  on("zoom-fit", "click", fit);
  on("full", "click", () => (document.fullscreenElement ? document.exitFullscreen() : figure.requestFullscreen()));
  on("save", "click", () => {
    clear();
    const copy = svg.cloneNode(true);
    for (const hidden of copy.querySelectorAll(".off, .loose .head, .edge:not(.pointed) .spare")) hidden.remove();
    for (const head of copy.querySelectorAll(".spare")) head.removeAttribute("display");
    for (const line of copy.querySelectorAll(".pointed .line")) line.removeAttribute("stroke-dasharray");
    for (const line of copy.querySelectorAll(".loose .line")) line.setAttribute("stroke-dasharray", "6 4");
    copy.setAttribute("viewBox", natural);
    copy.removeAttribute("style");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
    link.download = "graph.svg";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  const sift = () => {
    const least = +byId("least").value;
    const off = data.edges.map((e) => e.linked !== null && e.linked < least);
    for (const item of [...edges, ...rows]) item.classList.toggle("off", off[+item.dataset.edge]);
    byId("shown").textContent = `${least.toFixed(2)}: ${off.filter((x) => !x).length} of ${off.length} edges shown`;
    clear();
  };
  on("least", "input", sift);
  const widths = edges.map((item) => item.querySelector(".line").getAttribute("stroke-width"));
  on("thick", "change", () => {
    const strong = byId("thick").value === "strength";
    svg.classList.toggle("strong", strong);
    edges.forEach((item, i) => {
      const bold = data.edges[i].bold;
      item.classList.toggle("unsized", strong && bold === undefined);
      item.querySelector(".line").setAttribute("stroke-width", strong ? bold ?? 0.6 : widths[i]);
    });
    for (const text of svg.querySelectorAll(".raises")) text.setAttribute("display", strong ? "inline" : "none");
    byId("thicker").textContent = strong
      ? "thicker: stronger effect; + raises, − lowers; faint: unknown"
      : "thicker: higher P(edge)";
  });
  const labels = edges.map((item) => item.getAttribute("aria-label"));
  const turn = () => {
    leastWay = +byId("way").value;
    data.edges.forEach((e, i) => {
      if (!e.directed && !e.turns) return;
      const pointed = points(e);
      edges[i].classList.toggle("loose", e.directed && !pointed);
      edges[i].classList.toggle("pointed", !e.directed && pointed);
      const changed = `${between(e)}: ${pointed ? "directed" : "undirected"} at this threshold`;
      edges[i].setAttribute("aria-label", pointed === e.directed ? labels[i] : changed);
    });
    for (const row of rows) {
      const edge = data.edges[+row.dataset.edge], word = points(edge) ? "directed" : "undirected";
      const arrow = from(edge) === edge.a ? "→" : "←";
      row.cells[1].textContent = `${word === "directed" ? arrow : "—"}\u00a0${word}`;
      row.cells[1].dataset.value = word;
    }
    const arrows = data.edges.filter(points).length;
    byId("ways").textContent = `${leastWay.toFixed(2)}: ${arrows} ${arrows === 1 ? "arrow" : "arrows"}`;
    clear();
  };
  on("way", "input", turn);

  // --- the table -------------------------------------------------------------------------------
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      const head = button.parentElement, body = head.closest("table").tBodies[0];
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of head.parentElement.children) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.cells[head.cellIndex].dataset.value ?? row.cells[head.cellIndex].textContent;
      const order = new Intl.Collator(undefined, { numeric: true }).compare;
      const compare = (a, b) => (head.classList.contains("number") ? value(a) - value(b) : order(value(a), value(b)));
      body.append(...[...body.rows].sort((a, b) => (up ? compare(a, b) : compare(b, a))));
    });
  }
  for (const row of rows) {
    const hot = (state) => () => edges[+row.dataset.edge].classList.toggle("hot", state);
    row.addEventListener("pointerenter", hot(true));
    row.addEventListener("pointerleave", hot(false));
  }

  // --- paper -----------------------------------------------------------------------------------
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.print:not([open])")];
    for (const part of opened) part.open = true;
    figure.classList.remove("live");
    svg.style.height = "";
    svg.setAttribute("viewBox", natural);
  });
  addEventListener("afterprint", () => { for (const part of opened) part.open = false; settle(); });
  addEventListener("resize", settle);
  document.addEventListener("fullscreenchange", settle);
  for (const control of document.querySelectorAll(".controls")) control.hidden = false;
  settle();
})();
