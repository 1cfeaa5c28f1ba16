// What the theme and docutils leave to be said to those who hear a page: what a toggle opens, and that references are
// plain paragraphs (their roles are deprecated, and their list has children that are no items).
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary")) {
    const link = summary.closest("li")?.querySelector("a");
    if (link && !summary.textContent.trim()) summary.setAttribute("aria-label", `Below ${link.textContent.trim()}`);
  }
  for (const each of document.querySelectorAll(".citation, .citation-list, .citation [role]")) each.removeAttribute("role");
});
