// Which pages come first, for the search of Sphinx: pages that tell how to do something, then the reference, then the rest.
// A result is [page, title, anchor, description, score, file, kind].
var Scorer = {
  score: ([page, , anchor, , score]) => {
    const weights = [
      [/^(quick-start|guides\/|inference|prediction|classes|tests|groups|clusters|command-line|explorer|tour)/, 20],
      [/^(coming-from\/|bandwidth-conventions|scale|what-do-i-call)/, 8],
      [/^gallery\//, -6],
      [/^api\/items/, -4],
      [/^(api\/|architecture|glossary|how-it-works|project\/|zh\/)/, -12],
    ];
    const [, weight] = weights.find(([pattern]) => pattern.test(page)) || [null, 0];
    return score + weight - (anchor ? 3 : 0);
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
