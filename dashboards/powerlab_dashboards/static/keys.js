// Links with aria-keyshortcuts follow their key, unless somebody writes or another key is held.

export const followKeys = (root = document) => {
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest("input, select, textarea, [contenteditable]")) return;
    const links = [...root.querySelectorAll("a[aria-keyshortcuts]")];
    links.find((link) => link.getAttribute("aria-keyshortcuts") === event.key)?.click();
  });
};
