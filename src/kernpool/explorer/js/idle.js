/** Work in slices, when the browser has nothing better to do. */

const ask = window.requestIdleCallback || ((fn) => setTimeout(() => fn({ timeRemaining: () => 8 }), 30));

/**
 * @returns {{(job: () => boolean): () => void}} `idle(job)` calls `job` until it returns something falsy and returns a
 * function that cancels it. One call should take a few milliseconds: a frame may wait behind it.
 */
export function makeIdle() {
  const jobs = new Set();
  let asked = false;
  const request = () => {
    if (asked || !jobs.size) return;
    asked = true;
    ask(run, { timeout: 500 });
  };
  const run = (deadline) => {
    asked = false;
    try {
      for (const job of [...jobs]) {
        do {
          if (!jobs.has(job)) break;
          jobs.delete(job);
          if (job()) jobs.add(job);
        } while (jobs.has(job) && deadline.timeRemaining() > 4);
        if (deadline.timeRemaining() <= 4) break;
      }
    } finally {
      request();
    }
  };
  const idle = (job) => {
    const slice = () => job();
    jobs.add(slice);
    request();
    return () => jobs.delete(slice);
  };
  idle.clear = () => jobs.clear();
  return idle;
}
