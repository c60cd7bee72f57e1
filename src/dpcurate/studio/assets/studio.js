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
    const card = field.closest(".card");
    if (card.querySelector('select[name$=".use"]').value !== "ordered") return;
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
