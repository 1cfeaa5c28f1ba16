/** Title, language, theme, link and Python. */
import { html, put } from "./dom.js";
import { canTeach, switchLesson } from "./lesson.js";
import { toHash } from "./link.js";
import { toPython } from "./python.js";

/** @returns {{update: () => void, destroy: () => void}} */
export function makeToolbar(root, context) {
  const { store, words, payload } = context;
  const button = (name, onclick, attributes) => html("button", { type: "button", "data-control": name, onclick, ...attributes }, words(name));
  const text = html("textarea", { readonly: true, rows: 18, spellcheck: "false", "data-part": "copied", "aria-label": words("copy.python") });
  const told = html("p", { role: "status" });
  const warned = html("p", { class: "kp-hint" });
  const dialog = html("dialog", { class: "kp-dialog" }, told, text, warned, html("button", { type: "button", onclick: () => dialog.close() }, words("close")));
  const embed = html("button", { type: "button", "data-control": "embed", onclick: () => show(frameOf(text.value, heading.textContent), "copy.embed") }, words("copy.embed"));
  dialog.lastChild.before(embed, " ");
  const show = (value, name) => {
    put(embed, "hidden", name !== "copy.link");
    text.value = value;
    put(text, "aria-label", words(name));
    text.rows = Math.min(22, Math.max(value.split("\n").length + 1, Math.ceil(value.length / 70)));
    put(told, "text", "");
    put(warned, "text", "");
    if (!dialog.open) dialog.showModal();
    text.select();
    const copied = navigator.clipboard ? navigator.clipboard.writeText(value) : Promise.reject(new Error("no clipboard"));
    copied.then(() => put(told, "text", words("copied")), () => put(told, "text", words("copy.by.hand")));
  };
  const link = () => {
    show(location.href.replace(/#.*/, "") + "#" + toHash(store.get()), "copy.link");
    put(warned, "text", store.get().rows ? words("copy.rows") : "");
  };
  const isDark = () => context.el.dataset.theme === "dark";
  const theme = button("theme", () => store.set({ theme: isDark() ? "light" : "dark" }));
  const other = words.language === "zh" ? "en" : "zh";
  const language = html("button", { type: "button", "data-control": "language", lang: other === "zh" ? "zh-Hans" : "en", onclick: () => store.set({ language: other }) }, words("other"));
  // A page within a notebook (about:srcdoc) has no address that leads back to it.
  const linked = location.protocol === "about:" ? null : button("copy.link", link);
  const lesson = canTeach(context.data(), payload) ? button("lesson", () => switchLesson(context)) : null;
  const heading = html("h1", {});
  const whole = document.fullscreenEnabled ? button("whole", () => (document.fullscreenElement ? document.exitFullscreen() : context.el.requestFullscreen())) : null;
  const followScreen = () => whole && put(whole, "aria-pressed", String(document.fullscreenElement === context.el));
  document.addEventListener("fullscreenchange", followScreen);
  followScreen();
  root.append(
    html("div", { class: "kp-head" }, heading, html("div", { class: "kp-buttons" }, lesson, linked, button("copy.python", () => show(toPython(context), "copy.python")), language, theme, whole)),
    dialog,
  );
  return {
    update() {
      const { sample } = store.get();
      if (lesson) put(lesson, "aria-pressed", String(Boolean(store.get().lesson)));
      put(theme, "text", words(isDark() ? "light" : "dark"));
      const title = sample === null ? titleOf(context) : payload.samples[sample].generator;
      put(heading, "text", title);
      document.title = title;
    },
    destroy() {
      document.removeEventListener("fullscreenchange", followScreen);
    },
  };
}

/** The title of the page; one that Python made of the names is made in the language of the page. */
function titleOf({ data, words, payload }) {
  const names = payload.columns.map(({ name }) => name);
  const target = data().targetName;
  const made = `${target} by ${names.join(", ")}`;
  if (!payload.title?.startsWith(made)) return payload.title || words("title");
  const file = payload.title.slice(made.length).replace(/^ \((.*)\)$/, "$1");
  return words("title.by", { target, names: names.join(words("title.comma")) }) + (file && words("title.file", { file }));
}

/** HTML that shows a page within another one. */
function frameOf(address, title) {
  const escape = (value) => value.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;");
  return `<iframe src="${escape(address)}" title="${escape(title)}" width="100%" height="900" allow="fullscreen"></iframe>`;
}
