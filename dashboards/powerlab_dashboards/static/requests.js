// Requests that end: a server that lost its power closes no connection, and one that is stopped may keep one open.
// A page that waited for such an answer would follow nothing any more.

const SILENCE_MS = 15000; // a server that takes longer does not answer

export const ask = (address, headers = {}) => fetch(address, { headers, signal: AbortSignal.timeout(SILENCE_MS) });
