"use strict";
// Keeps the board current, and its filter, order and open details in place. Everything it shows is on the page without it.
(() => {
  const board = document.getElementById("board");
  const link = document.getElementById("link");
  const form = document.getElementById("filter");
  const place = new URLSearchParams(location.search);
  form.q.value = place.get("q") || "";
  form.state.value = place.get("state") || "";
  let order = place.get("sort") || "";

  const keep = () => {
    const now = new URLSearchParams();
    if (form.q.value) now.set("q", form.q.value);
    if (form.state.value) now.set("state", form.state.value);
    if (order) now.set("sort", order);
    const text = now.toString();
    history.replaceState(null, "", text ? "?" + text : location.pathname);
  };

  const arrange = () => {
    const table = document.getElementById("acceptances");
    if (!table) return;
    const words = form.q.value.toLowerCase();
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) {
      const fits = row.textContent.toLowerCase().includes(words);
      row.hidden = !fits || (form.state.value && row.dataset.state !== form.state.value);
    }
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.dataset.sort) return;
      if (!head.querySelector("button")) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = head.textContent;
        button.addEventListener("click", () => {
          order = order === column + "a" ? column + "d" : column + "a";
          keep();
          arrange();
        });
        head.replaceChildren(button);
      }
      const own = parseInt(order, 10) === column;
      head.setAttribute("aria-sort", own ? (order.endsWith("d") ? "descending" : "ascending") : "none");
    });
    const none = document.getElementById("no-fit");
    if (none) none.hidden = rows.some((row) => !row.hidden);
    if (!order) return;
    const column = parseInt(order, 10);
    const head = table.tHead.rows[0].cells[column];
    if (!head) return;
    const falling = order.endsWith("d");
    const numeric = head.dataset.sort === "number";
    const value = (row) => numeric ? parseFloat(row.cells[column].textContent) : row.cells[column].textContent.trim();
    // What is not known stands last, whichever way the rest is sorted.
    const unknown = (value) => numeric ? Number.isNaN(value) : value === "–";
    rows.sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      if (unknown(a) || unknown(b)) return unknown(a) - unknown(b);
      const way = numeric ? a - b : a.localeCompare(b);
      return falling ? -way : way;
    });
    table.tBodies[0].append(...rows);
  };

  form.addEventListener("input", () => { keep(); arrange(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  arrange();

  const events = new EventSource("/events");
  events.addEventListener("board", (event) => {
    const open = [...board.querySelectorAll("details")].map((one) => one.open);
    const focus = board.contains(document.activeElement) ? document.activeElement.textContent : null;
    board.innerHTML = event.data;
    board.querySelectorAll("details").forEach((one, at) => { one.open = open[at] || false; });
    arrange();
    if (focus) {
      const again = [...board.querySelectorAll("a, button, summary")].find((one) => one.textContent === focus);
      if (again) again.focus();
    }
    link.textContent = "live";
  });
  events.addEventListener("open", () => { link.textContent = "live"; });
  events.addEventListener("error", () => { link.textContent = "connection lost, trying again"; });
})();
