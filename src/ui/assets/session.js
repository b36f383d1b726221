// The session of this tab, which goes with every request in a header. A browser would send a cookie to all ports of this
// machine; what is kept here belongs to this origin, and so to this port.
const KEY = 'session';
// How long other tabs have to answer.
const PATIENCE = 500;

let session = sessionStorage.getItem(KEY);
let show = () => {};

// A tab without a session, such as one that a click with Ctrl has opened, gets it from another tab of this origin.
const tabs = new BroadcastChannel(KEY);
tabs.addEventListener('message', ({ data }) => { if (data.asks && session) tabs.postMessage({ session }); });

function fromOtherTab() {
  return new Promise((done) => {
    const hear = ({ data }) => { if (data.session) end(data.session); };
    const timer = setTimeout(() => end(null), PATIENCE);
    const end = (answer) => { clearTimeout(timer); tabs.removeEventListener('message', hear); done(answer); };
    tabs.addEventListener('message', hear);
    tabs.postMessage({ asks: true });
  });
}

function keep(found) {
  session = found;
  if (found) sessionStorage.setItem(KEY, found);
  else sessionStorage.removeItem(KEY);
}

// Exchanges a link's token for a session; returns why there is none. Without a token, the server prints a link if none is open.
async function exchange(token) {
  try {
    const answer = await fetch('/session', { method: 'POST', headers: { authorization: `Bearer ${token}` } });
    const found = await answer.json().catch(() => ({ error: `The server answered ${answer.status}.` }));
    if (!answer.ok) return found.error;
    keep(found.session);
    return null;
  } catch {
    return 'cronjob-controller does not answer.';
  }
}

// The link's token, which does not stay in the address.
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token) history.replaceState(history.state, '', location.pathname + location.search);
  return token;
}

async function open(token) {
  let error = token && await exchange(token);
  if (!session) keep(await fromOtherTab());
  if (!session && !error) error = await exchange('');
  show(session ? null : error);
}

// Calls `shown` when there is a session, and with the reason whenever there is none.
export function begin(shown) {
  show = shown;
  // A link that is opened in this tab changes only the fragment.
  addEventListener('hashchange', () => {
    const token = takeToken();
    if (token) open(token);
  });
  open(takeToken());
}

// Sends a request. If the server does not know the session, it was started anew or has given too many others.
export async function ask(path, signal) {
  const used = session;
  const answer = await fetch(`/api/${path}`, { signal, headers: { authorization: `Bearer ${used}` } });
  if (answer.status === 401 && used && used === session) {
    keep(null);
    exchange('').then((error) => session || show(error));
  }
  return answer;
}
