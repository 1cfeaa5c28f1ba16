// Which pages come first, for the search of Sphinx: those whose keywords are what was typed, then pages that tell how to do
// something, then the reference, then the rest. A result is [page, title, anchor, description, score, file, kind].
const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
const typed = () => plain(new URLSearchParams(location.search).get("q") || "");

function byKeywords(page, query) {
  const phrases = (KEYWORDS[page] || []).map(plain);
  if (phrases.includes(query)) return 200;
  if (plain(page).endsWith(` kernpool ${query}`)) return 200; // the reference of a name
  const words = new Set(phrases.flatMap((phrase) => phrase.split(" ")));
  return query.split(" ").every((word) => words.has(word)) ? 60 : 0;
}

var Scorer = {
  score: ([page, , anchor, , score]) => {
    const weights = [
      [/^(quick-start|guides\/|inference|prediction|classes|methods|tests|groups|clusters|command-line|explorer|tour)/, 10],
      [/^(coming-from\/|bandwidth-conventions|what-do-i-call)/, 5],
      [/^gallery\//, -6],
      [/^(api\/|architecture|glossary|how-it-works|project\/|zh\/)/, -12],
    ];
    const [, weight] = weights.find(([pattern]) => pattern.test(page)) || [null, 0];
    return score + weight + byKeywords(page, typed()) - (anchor ? 3 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 4,
  objPrio: { 0: 10, 1: 3, 2: -5 },
  objPrioDefault: 0,
  title: 18,
  partialTitle: 8,
  term: 6,
  partialTerm: 2,
};
