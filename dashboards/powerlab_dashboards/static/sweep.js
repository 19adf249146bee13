// The sweep's page: a change of its form, or a link with data-instant, changes the address and then the page's live parts.

import { refresh } from "./live.js";

const TYPING_MS = 300;

const go = async (address) => {
  history.replaceState(null, "", address);
  await refresh();
};

const addressOf = (form) => {
  const fields = [...new FormData(form)].filter(([, value]) => value !== "");
  return `${form.getAttribute("action")}?${new URLSearchParams(fields)}`;
};

export const watchChoices = () => {
  const form = document.getElementById("choices");
  if (!form) return;
  let timer = 0;
  const soon = (wait) => {
    clearTimeout(timer);
    timer = setTimeout(() => go(addressOf(form)), wait);
  };
  document.addEventListener("input", (event) => {
    if (event.target.form === form) soon(event.target.matches("input:not([type=checkbox])") ? TYPING_MS : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    soon(0);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-instant]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(link.href);
  });
};
