/** Title, language, theme, link and Python. */
import { html, put } from "./dom.js";
import { toHash } from "./link.js";
import { toPython } from "./python.js";

/** @returns {{update: () => void, destroy: () => void}} */
export function makeToolbar(root, context) {
  const { store, words, payload, host } = context;
  const button = (name, onclick, attributes) => html("button", { type: "button", "data-control": name, onclick, ...attributes }, words(name));
  const text = html("textarea", { readonly: true, rows: 18, spellcheck: "false", "data-part": "copied", "aria-label": words("copy.python") });
  const told = html("p", { role: "status" });
  const dialog = html("dialog", { class: "kp-dialog" }, told, text, html("button", { type: "button", onclick: () => dialog.close() }, words("close")));
  const show = (value, name) => {
    text.value = value;
    put(text, "aria-label", words(name));
    text.rows = Math.min(22, value.split("\n").length + 1);
    put(told, "text", "");
    dialog.showModal();
    text.select();
    const copied = navigator.clipboard ? navigator.clipboard.writeText(value) : Promise.reject(new Error("no clipboard"));
    copied.then(() => put(told, "text", words("copied")), () => put(told, "text", words("copy.by.hand")));
  };
  const link = () => show(location.href.replace(/#.*/, "") + "#" + toHash(store.get()), "copy.link");
  const isDark = () => context.el.dataset.theme === "dark";
  const theme = button("theme", () => store.set({ theme: isDark() ? "light" : "dark" }));
  const other = words.language === "zh" ? "en" : "zh";
  const language = html("button", { type: "button", "data-control": "language", lang: other === "zh" ? "zh-Hans" : "en", onclick: () => store.set({ language: other }) }, words("other"));
  const linked = host && host.kind === "widget" ? null : button("copy.link", link);
  root.append(
    html("div", { class: "kp-head" }, html("h1", {}, payload.title || words("title")), html("div", { class: "kp-buttons" }, linked, button("copy.python", () => show(toPython(context), "copy.python")), language, theme)),
    dialog,
  );
  return {
    update: () => put(theme, "text", words(isDark() ? "light" : "dark")),
    destroy() {},
  };
}
