/** Title, language, theme, link and Python. */
import { html, put } from "./dom.js";
import { canTeach, switchLesson } from "./lesson.js";
import { toHash } from "./link.js";
import { toPython } from "./python.js";

/** @returns {{update: () => void, destroy: () => void}} */
export function makeToolbar(root, context) {
  const { store, words, payload, host } = context;
  const button = (name, onclick, attributes) => html("button", { type: "button", "data-control": name, onclick, ...attributes }, words(name));
  const text = html("textarea", { readonly: true, rows: 18, spellcheck: "false", "data-part": "copied", "aria-label": words("copy.python") });
  const told = html("p", { role: "status" });
  const warned = html("p", { class: "kp-hint" });
  const dialog = html("dialog", { class: "kp-dialog" }, told, text, warned, html("button", { type: "button", onclick: () => dialog.close() }, words("close")));
  const show = (value, name) => {
    text.value = value;
    put(text, "aria-label", words(name));
    text.rows = Math.min(22, value.split("\n").length + 1);
    put(told, "text", "");
    put(warned, "text", "");
    dialog.showModal();
    text.select();
    const copied = navigator.clipboard ? navigator.clipboard.writeText(value) : Promise.reject(new Error("no clipboard"));
    copied.then(() => put(told, "text", words("copied")), () => put(told, "text", words("copy.by.hand")));
  };
  const link = () => {
    show(location.href.replace(/#.*/, "") + "#" + toHash(store.get()), "copy.link");
    put(warned, "text", [isServed ? words("copy.served") : "", store.get().rows ? words("copy.rows") : ""].filter(Boolean).join(" "));
  };
  const isDark = () => context.el.dataset.theme === "dark";
  const theme = button("theme", () => store.set({ theme: isDark() ? "light" : "dark" }));
  const other = words.language === "zh" ? "en" : "zh";
  const language = html("button", { type: "button", "data-control": "language", lang: other === "zh" ? "zh-Hans" : "en", onclick: () => store.set({ language: other }) }, words("other"));
  const isServed = host && host.kind === "server";
  // A notebook, and a page within one (about:srcdoc), have no address that leads back to them.
  const linked = (host && host.kind === "widget") || location.protocol === "about:" ? null : button("copy.link", link);
  const lesson = canTeach(context.data(), payload) ? button("lesson", () => switchLesson(context)) : null;
  const heading = html("h1", {});
  root.append(
    html("div", { class: "kp-head" }, heading, html("div", { class: "kp-buttons" }, lesson, linked, button("copy.python", () => show(toPython(context), "copy.python")), language, theme)),
    dialog,
  );
  return {
    update() {
      const { sample } = store.get();
      if (lesson) put(lesson, "aria-pressed", String(Boolean(store.get().lesson)));
      put(theme, "text", words(isDark() ? "light" : "dark"));
      put(heading, "text", sample === null ? payload.title || words("title") : payload.samples[sample].generator);
    },
    destroy() {},
  };
}
