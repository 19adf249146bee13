// Buttons with data-copy put their text on the clipboard and say so.

import { _ } from "./language.js";

const SAID_MS = 2000;

const toClipboard = async (text) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Without HTTPS a browser has no clipboard for scripts, but it still copies what is selected.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (!copied) throw new Error("refused");
};

const say = (button, words) => {
  const before = (button.dataset.before ??= button.textContent);
  button.textContent = words;
  setTimeout(() => {
    button.textContent = before;
  }, SAID_MS);
};

export const watchCopies = () => {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    try {
      await toClipboard(button.dataset.copy);
      say(button, _("Copied"));
      button.focus();
    } catch {
      window.prompt(_("Copy this:"), button.dataset.copy);
    }
  });
};
