// Partial updates without a framework. A page works without this script: forms post and the server answers with a page.
//
//   <form data-swap="a b">            post in the background, replace the elements #a and #b by those of the answer
//   <form data-swap="a" data-auto>    the same whenever a field changes (while typing: after a pause)
//   <a data-swap="a" href="...">      load in the background, replace #a
//   <div id="a" data-poll="1500">     load this page again every 1500 ms and replace #a, as long as it asks for it;
//                                     with data-swap="b c" replace #b and #c, those that have changed
//   <button data-sure="...">          asks once more before the form is sent
"use strict";
(() => {
  const PAUSE = 350;
  let timer, waits; // a change that is not sent yet, and its form
  const latest = new Map(); // newest request of each target, so that a slow answer does not undo a later one

  function tell(text) {
    const live = document.getElementById("live");
    live.textContent = text;
    live.hidden = !text;
  }

  // Nothing is replaced under a pressed button or in the middle of a drag: a click on what is gone would be lost.
  let released = Promise.resolve();
  const held = (ends) => () => (released = new Promise((done) => {
    for (const end of ends) document.addEventListener(end, () => setTimeout(done), { once: true, capture: true });
    setTimeout(done, 10000);
  }));
  document.addEventListener("pointerdown", held(["pointerup", "pointercancel"]), true);
  document.addEventListener("dragstart", held(["dragend", "drop"]), true);

  async function hands_off() {
    for (let last; last !== released;) await (last = released);
  }

  // What a person would miss if an element were replaced: focus, selection, open details.
  function remember(old) {
    const open = [...old.querySelectorAll("details[id]")].map((one) => [one.id, one.open]);
    const active = document.activeElement;
    if (!active || !active.id || !old.contains(active)) return { open };
    const select = typeof active.selectionStart === "number" ? [active.selectionStart, active.selectionEnd] : null;
    return { open, id: active.id, select };
  }

  function restore({ open, id, select }) {
    for (const [name, was] of open) {
      const one = document.getElementById(name);
      if (one) one.open = was;
    }
    const again = id && document.getElementById(id);
    if (!again) return;
    again.focus({ preventScroll: true });
    if (select && again.setSelectionRange) again.setSelectionRange(...select);
  }

  function replace(page, names) {
    let found = false;
    for (const name of names) {
      const old = document.getElementById(name), fresh = page.getElementById(name);
      if (!old || !fresh) continue;
      old.classList.remove("busy");
      if (old.isEqualNode(fresh) && (found = true)) continue;
      const state = remember(old);
      old.replaceWith(document.adoptNode(fresh));
      restore(state);
      found = true;
      start(fresh);
      fresh.dispatchEvent(new CustomEvent("swapped", { bubbles: true }));
    }
    return found;
  }

  async function load(url, options, names) {
    const key = names.join(" "), number = (latest.get(key) || 0) + 1;
    latest.set(key, number);
    for (const name of names) document.getElementById(name)?.classList.add("busy");
    try {
      const answer = await fetch(url, { ...options, headers: { "X-Partial": "1" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      await hands_off();
      if (latest.get(key) !== number) return true;
      const here = new URL(answer.url).pathname === location.pathname;
      if (answer.redirected && !here) location.assign(answer.url);
      else if (!replace(page, names)) {
        if (answer.ok) location.assign(answer.url);
        else tell(page.getElementById("problem")?.textContent || page.body.textContent.slice(0, 300));
        return answer.ok;
      }
      tell("");
      return true;
    } catch (error) {
      if (error instanceof TypeError) tell("The server does not answer. Nothing is lost: start it again and reload.");
      else throw error;
      return false;
    } finally {
      for (const name of names) document.getElementById(name)?.classList.remove("busy");
    }
  }

  const targets = (element) => element.dataset.swap.split(" ").filter(Boolean);

  // What is typed and what is pressed arrives in the order in which it happened.
  let sent = Promise.resolve();

  function submit(form, button) {
    if (waits === form) clearTimeout(timer);
    const data = new FormData(form);
    if (button && button.name) data.append(button.name, button.value);
    const url = new URL(button?.getAttribute("formaction") || form.getAttribute("action") || location.href, location.href);
    if (form.method === "get") {
      url.search = new URLSearchParams(data).toString();
      return load(url, {}, targets(form));
    }
    const body = new URLSearchParams(data);
    return (sent = sent.catch(() => {}).then(() => load(url, { method: "POST", body }, targets(form))));
  }

  function poll(element) {
    const wait = Number(element.dataset.poll);
    setTimeout(async () => {
      if (!element.isConnected) return;
      await load(location.href, {}, "swap" in element.dataset ? targets(element) : [element.id]);
      if (element.isConnected) poll(element); // it was not replaced, so nobody else will
    }, wait);
  }

  function start(root) {
    for (const element of [root, ...root.querySelectorAll("[data-poll]")]) if (element.dataset?.poll) poll(element);
  }

  document.addEventListener("submit", (event) => {
    const form = event.target, button = event.submitter;
    if (button?.dataset.sure && !confirm(button.dataset.sure)) return event.preventDefault();
    if (!form.dataset.swap) return;
    event.preventDefault();
    submit(form, button);
  });

  function changed(event, wait) {
    const form = event.target.form;
    if (!form || !("auto" in form.dataset) || event.target.dataset.auto === "off") return;
    if (waits === form) clearTimeout(timer);
    waits = form;
    timer = setTimeout(() => (form.dataset.swap ? submit(form) : form.requestSubmit()), wait);
  }
  document.addEventListener("input", (event) => changed(event, PAUSE));
  document.addEventListener("change", (event) => changed(event, 0));

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-swap]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    load(link.href, {}, targets(link));
  });

  document.addEventListener("DOMContentLoaded", () => start(document.body));
})();
