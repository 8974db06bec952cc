"use strict";
// Sorts tables by a column and filters their rows; without it, tables show the same in plan order.
{
  const text = (row, column) => row.cells[column].textContent.trim();
  const number = (value) => {
    const found = /^[-+−]?[\d,]*\.?\d+/.exec(value);
    return found ? Number(found[0].replaceAll(",", "").replace("−", "-")) : NaN;
  };
  const sort = (table, header, column) => {
    const falling = header.getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0];
    const rows = [...body.rows];
    rows.sort((one, other) => {
      const [a, b] = [text(one, column), text(other, column)];
      const [x, y] = [number(a), number(b)];
      if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
      const order = Number.isNaN(x) ? a.localeCompare(b) : x - y;
      return falling ? -order : order;
    });
    for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", falling ? "descending" : "ascending");
    body.append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(table, header, column));
      header.append(button);
    });
    if (table.tBodies[0].rows.length <= 12) continue;
    const box = document.createElement("input");
    box.type = "search";
    const label = document.createElement("label");
    label.className = "filter small";
    label.append("Only rows with ", box);
    box.addEventListener("input", () => {
      const wanted = box.value.toLowerCase();
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
      }
    });
    table.parentElement.before(label);
  }
  for (const chart of document.querySelectorAll(".zoomable svg")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "zoom small";
    button.textContent = "Larger";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const large = chart.classList.toggle("large");
      button.setAttribute("aria-pressed", String(large));
    });
    chart.before(button);
  }
  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    const details = target && target.closest("details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", open);
  open();
}
