// The state of the page, which is in its URL, and requests.
import { useEffect, useRef, useState } from './vendor/htm-preact-3.1.1.js';
import { ask } from './session.js';

export const LOCAL_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

export const SPREADS = ['', '1m', '5m', '10m', '15m', '30m', '1h', '2h', '6h', '12h', '24h'];
export const SPANS = { '1h': 1, '6h': 6, '24h': 24, '7d': 168, '30d': 720 };

// What the URL may hold. A value that is the default is left out of it, but for the zone: who gets a link sees the same times.
const DEFAULTS = {
  view: 'table', q: '', namespace: '', label: '', image: '', group: '', state: '', sort: 'problems', reverse: '',
  day: '', zone: LOCAL_ZONE, show: 'starts', spread: '', minute: '', span: '6h', at: '', cj: '', job: '',
};

export const isOffset = (name) => /^\s*[+\u2212-]?\d/.test(name);

// The name of a time zone as the server writes it, too; null if there is none. An offset has no name, and no rules.
export function zoneNamed(name) {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en-GB', { timeZone: name.trim() }).resolvedOptions();
    return name.trim() === '' || isOffset(timeZone) ? null : timeZone;
  } catch {
    return null;
  }
}

const oneOf = (...names) => (value) => names.includes(value);
const isTime = (value) => !Number.isNaN(Date.parse(value));
const VALID = {
  view: oneOf('table', 'heat', 'timeline', 'night', 'shadow'),
  group: (value) => /^(namespace|image|label:.+)$/.test(value), show: oneOf('starts', 'jobs'),
  state: oneOf('overdue', 'stuck', 'blocked', 'failed', 'growing', 'never', 'soon', 'fine', 'frozen', 'stopped'),
  sort: oneOf('problems', 'name', 'next', 'last', 'lateness', 'failures'),
  zone: (value) => !!zoneNamed(value), spread: oneOf(...SPREADS), span: oneOf(...Object.keys(SPANS)),
  day: (value) => /^\d{4}-\d\d-\d\d$/.test(value) && isTime(value), minute: isTime, at: isTime,
};

// The state that the URL holds. What it cannot mean is the default, and is named in `wrong`.
export function read() {
  const params = new URLSearchParams(location.search);
  const wrong = [];
  const state = Object.fromEntries(Object.entries(DEFAULTS).map(([name, value]) => {
    const given = params.get(name);
    if (!given || (VALID[name]?.(given) ?? true)) return [name, given || value];
    wrong.push(`${name}=${given}`);
    return [name, value];
  }));
  return { ...state, zone: zoneNamed(state.zone) ?? LOCAL_ZONE, wrong };
}

export function address({ wrong, ...state }) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (name === 'zone' || value !== DEFAULTS[name]) params.set(name, value);
  }
  return `${location.pathname}?${params}`;
}

// The state and a function that changes it. Steps that a user may want to take back go into the history.
export function useUrlState() {
  const [state, set] = useState(read);
  const latest = useRef(state);
  useEffect(() => {
    const back = () => { latest.current = read(); set(latest.current); };
    addEventListener('popstate', back);
    // The link that is in the address bar names the zone from the first moment.
    history.replaceState(history.state, '', address(latest.current));
    return () => removeEventListener('popstate', back);
  }, []);
  const change = (changes) => {
    const next = { ...latest.current, ...changes, wrong: [] };
    const isStep = 'view' in changes || 'cj' in changes;
    history[isStep ? 'pushState' : 'replaceState'](null, '', address(next));
    latest.current = next;
    set(next);
  };
  return [state, change];
}

export const selection = ({ q, namespace, label, image, state, sort, reverse }) =>
  ({ q, namespace, label, image, state, sort, reverse: reverse ? 'true' : 'false' });

export async function get(path, params, signal) {
  const filled = Object.entries(params).filter(([, value]) => value !== '' && value !== undefined);
  const answer = await ask(`${path}?${new URLSearchParams(filled)}`, signal);
  if (answer.ok) return answer.json();
  const { error } = await answer.json().catch(() => ({}));
  throw new Error(error ?? `the server answered ${answer.status}`);
}

// The latest answer to a request, which is sent again when a parameter or the version changes. The answer before it stays
// until the next one is there.
export function useAnswer(path, params, version) {
  const [answer, set] = useState({ value: null, error: null, key: '' });
  const key = JSON.stringify([path, params]);
  useEffect(() => {
    const abort = new AbortController();
    get(path, params, abort.signal).then(
      (value) => set({ value, error: null, key }),
      (error) => error.name !== 'AbortError' && set((before) => ({ ...before, error: error.message, key })),
    );
    return () => abort.abort();
  }, [key, version]);
  return { ...answer, isOld: answer.key !== key };
}

// How long the page waits before it asks for events again.
const RETRY = 1000;

// Calls `hear` with the data of each event, and `miss` when a second attempt in a row has brought none. The connection is
// opened again whenever it ends. An EventSource would do the same, but sends no header.
async function follow(path, signal, hear, miss) {
  for (let failures = 0; !signal.aborted;) {
    try {
      const { body } = await ask(path, signal);
      const reader = body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '';
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const lines = (rest + part.value).split('\n');
        rest = lines.pop();
        for (const line of lines.filter((text) => text.startsWith('data:'))) {
          failures = 0;
          hear(line.slice(5));
        }
      }
    } catch { /* It is tried again. */ }
    failures += 1;
    if (failures > 1 && !signal.aborted) miss();
    await new Promise((done) => setTimeout(done, RETRY));
  }
}

// The version of the server's rows, and whether the server still sends it.
export function useVersion() {
  const [version, set] = useState({ version: 0, live: false });
  useEffect(() => {
    const abort = new AbortController();
    const hear = (data) => set({ version: Number(data), live: true });
    follow('events', abort.signal, hear, () => set((before) => ({ ...before, live: false })));
    return () => abort.abort();
  }, []);
  return version;
}

// The time of the server, which may differ from the browser's. While what the server knows is old, its time stands still.
let clock = { skew: 0, frozen: null };
export const setNow = (text, isFrozen) => {
  const time = Date.parse(text);
  clock = { skew: time - Date.now(), frozen: isFrozen ? time : null };
};
export const now = () => clock.frozen ?? Date.now() + clock.skew;

export function useNow(period = 1000) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), period);
    return () => clearInterval(timer);
  }, [period]);
  return now();
}
