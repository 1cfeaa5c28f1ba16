/** Questions to an engine of Python, of which only the newest matters: one is on its way, and one waits. */

/** Whether the page draws some of the rows, and an engine knows all of them. */
export function hasEngine({ host, payload, data }) {
  return Boolean(host && host.ask && !payload.samples && payload.rows > data().n);
}

/**
 * @param {(answer: object, request: object) => void} use is not called for answers that a newer request has overtaken
 * @returns {(request: object) => void}
 */
export function makeAsker(host, use) {
  let waiting = null;
  let isBusy = false;
  const run = async () => {
    isBusy = true;
    while (waiting) {
      const request = waiting;
      waiting = null;
      try {
        const answer = await host.ask(request);
        if (!waiting) use(answer, request);
      } catch (error) {
        if (!waiting) use({ error }, request);
      }
    }
    isBusy = false;
  };
  return (request) => {
    waiting = request;
    if (!isBusy) run();
  };
}
