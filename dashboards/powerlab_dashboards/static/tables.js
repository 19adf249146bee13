// Sorting: a click on a heading's button sorts the table's first body; the sort is stable.
// A cell's sort key is its data-key, if any, else its text; cells with an empty key (missing figures) stay last.

const key = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.key ?? cell.textContent.trim();
};

const compare = (a, b) => {
  const [x, y] = [Number(a), Number(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, undefined, { numeric: true }) : x - y;
};

const sortBy = (table, column, direction) => {
  const rows = [...table.tBodies[0].rows];
  const [filled, empty] = [[], []];
  for (const row of rows) (key(row, column) === "" ? empty : filled).push(row);
  const sign = direction === "descending" ? -1 : 1;
  filled.sort((a, b) => sign * compare(key(a, column), key(b, column)));
  table.tBodies[0].append(...filled, ...empty);
  for (const heading of table.tHead.rows[0].cells) heading.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", direction);
};

export const makeSortable = (root = document) => {
  for (const button of root.querySelectorAll("th > button.sort")) {
    const heading = button.parentElement;
    button.addEventListener("click", () => {
      const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      sortBy(heading.closest("table"), heading.cellIndex, direction);
    });
  }
};

// The user's sort order, to restore it after a refresh.
export const sortState = (root) =>
  [...root.querySelectorAll("table")].map((table) => {
    const heading = table.tHead?.querySelector("th[aria-sort]:has(> button.sort)");
    return heading ? [heading.cellIndex, heading.getAttribute("aria-sort")] : null;
  });

export const restoreSort = (root, state) => {
  [...root.querySelectorAll("table")].forEach((table, index) => {
    if (state[index]) sortBy(table, ...state[index]);
  });
};
