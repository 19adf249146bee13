// The words of scripts in the page's language: the server sends those that it has as JSON in the page; else they are English.

const words = JSON.parse(document.getElementById("words")?.textContent ?? "{}");

export const language = document.documentElement.lang || "en";

export const _ = (message, values = {}) =>
  (words[message] ?? message).replace(/%\((\w+)\)s/g, (place, name) => values[name] ?? place);
