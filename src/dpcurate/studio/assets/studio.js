// What needs a script: sorting levels, dragging columns between tiers, and sliders that say where they are.
// Everything that is dragged can be done with buttons and selects as well.
"use strict";
(() => {
  // --- levels in order: the text field stays the truth; a list beside it moves its lines -----------------------------
  function changed(field) {
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function move(field, from, to, focus) {
    const lines = field.value.split("\n").filter((line) => line.trim());
    if (to < 0 || to >= lines.length || from === to) return;
    lines.splice(to, 0, ...lines.splice(from, 1));
    field.value = lines.join("\n");
    listLevels(field);
    if (focus) field.nextElementSibling.children[to].querySelector(`[data-by="${focus}"]`)?.focus();
    changed(field);
  }

  function tool(text, name, by, action) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.textContent = text;
    button.setAttribute("aria-label", name);
    button.dataset.by = by;
    button.addEventListener("click", action);
    return button;
  }

  function listLevels(field) {
    const old = field.nextElementSibling;
    if (old?.classList.contains("sorted")) old.remove();
    const card = field.closest(".card"), ordered = card.querySelector('select[name$=".use"]').value === "ordered";
    field.hidden = ordered && !("open" in field.dataset);
    if (!ordered) return;
    const list = document.createElement("ol");
    list.className = "sorted";
    list.setAttribute("aria-label", `${field.dataset.name}, from low to high`);
    field.value.split("\n").filter((line) => line.trim()).forEach((line, i) => {
      const item = document.createElement("li"), name = document.createElement("span");
      name.textContent = line;
      item.draggable = true;
      item.append(name, tool("↑", `${line}: lower`, "-1", () => move(field, i, i - 1, "-1")),
        tool("↓", `${line}: higher`, "1", () => move(field, i, i + 1, "1")));
      item.addEventListener("dragstart", (event) => {
        event.dataTransfer.setData("text/plain", `${field.id} ${i}`);
        event.dataTransfer.effectAllowed = "move";
        item.classList.add("dragged");
      });
      item.addEventListener("dragend", () => item.classList.remove("dragged"));
      item.addEventListener("dragover", (event) => event.preventDefault());
      item.addEventListener("drop", (event) => {
        const [id, from] = event.dataTransfer.getData("text/plain").split(" ");
        event.preventDefault();
        if (id === field.id) move(field, Number(from), i);
      });
      list.append(item);
    });
    const more = document.createElement("li");
    more.className = "edit";
    more.append(tool("Add or rename", `${field.dataset.name}: add or rename values`, "edit", () => {
      field.hidden = !field.hidden;
      if (field.hidden) delete field.dataset.open;
      else (field.dataset.open = "1") && field.focus();
    }));
    list.append(more);
    field.after(list);
  }

  // --- tiers: a chip that is dropped changes its select, which the form sends ----------------------------------------
  document.addEventListener("dragstart", (event) => {
    const chip = event.target.closest?.(".chip");
    if (!chip) return;
    event.dataTransfer.setData("text/plain", `chip ${chip.dataset.column}`);
    event.dataTransfer.effectAllowed = "move";
    chip.classList.add("dragged");
  });
  document.addEventListener("dragend", (event) => event.target.classList?.remove("dragged"));
  document.addEventListener("dragover", (event) => {
    const tier = event.target.closest?.(".tier");
    document.querySelectorAll(".over-me").forEach((one) => one !== tier && one.classList.remove("over-me"));
    if (!tier) return;
    event.preventDefault();
    tier.classList.add("over-me");
  });
  document.addEventListener("drop", (event) => {
    const tier = event.target.closest?.(".tier"), [what, column] = event.dataTransfer.getData("text/plain").split(" ");
    document.querySelectorAll(".over-me").forEach((one) => one.classList.remove("over-me"));
    if (!tier || what !== "chip") return;
    event.preventDefault();
    const select = document.getElementById(`t-${column}`);
    if (!select || select.value === tier.dataset.tier) return;
    select.value = tier.dataset.tier;
    changed(select);
  });

  // --- pairs of columns: picked on the picture, one after the other, by dragging from one to another, or by their line --
  let first = null, pressed = null;
  const select = (end, number) => (document.getElementById(`pair-${end}`).selectedIndex = Number(number));
  const nodes = () => document.querySelectorAll("[data-pick]");

  function pair(a, b) {
    select("a", a);
    select("b", b);
    first = null;
    nodes().forEach((one) => one.classList.toggle("picked", [a, b].includes(one.dataset.pick)));
    const [one, other] = ["a", "b"].map((end) => document.getElementById(`pair-${end}`).value);
    document.getElementById("picked").textContent = `${one} and ${other}: say below what is true of them.`;
    document.querySelector('#facts button[value^="say:"]').focus({ preventScroll: true });
  }

  function pick(number) {
    if (first !== null && first !== number && document.querySelector(".picked")) return pair(first, number);
    first = number;
    select("a", number);
    nodes().forEach((one) => one.classList.toggle("picked", one.dataset.pick === number));
    document.getElementById("picked").textContent = "Now pick the other column.";
  }

  const node = (event) => event.target.closest?.("[data-pick]");
  document.addEventListener("pointerdown", (event) => { pressed = node(event)?.dataset.pick ?? null; });
  document.addEventListener("pointerup", (event) => {
    const end = node(event)?.dataset.pick;
    if (pressed !== null && end !== undefined && end !== pressed) pair(pressed, end);
  });
  document.addEventListener("click", (event) => {
    const one = node(event), link = event.target.closest?.("[data-ends]");
    if (one) pick(one.dataset.pick);
    else if (link) pair(...link.dataset.ends.split(" "));
  });
  document.addEventListener("keydown", (event) => {
    if (!node(event) || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    pick(node(event).dataset.pick);
  });

  // --- sliders --------------------------------------------------------------------------------------------------------
  document.addEventListener("input", (event) => {
    const field = event.target;
    if (field.dataset?.values) {
      const text = String(Number(field.dataset.values.split(" ")[Number(field.value)]));
      field.form.elements.epsilon.value = field.form.elements.was.value = text;
    }
    if (field.dataset?.out) document.getElementById(field.dataset.out).textContent = field.value;
  });
  document.addEventListener("change", (event) => {
    if (event.target.name?.endsWith(".use")) event.target.closest(".card").querySelectorAll("textarea.levels").forEach(listLevels);
    if (event.target.matches?.("textarea.levels")) listLevels(event.target);
  });
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("textarea.levels").forEach(listLevels));
})();
