// Times, durations and names of states, for people.
import { html, useState } from './vendor/htm-preact-3.1.1.js';

export const count = (number, noun) => `${number.toLocaleString('en-US')} ${noun}${number === 1 ? '' : 's'}`;

const two = (number) => String(number).padStart(2, '0');

// As the commands write it: at most two units.
export function stretch(millis) {
  const seconds = Math.ceil(Math.max(millis, 0) / 1000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h${two(Math.floor((seconds % 3600) / 60))}m`;
  return `${Math.floor(seconds / 86400)}d${two(Math.floor((seconds % 86400) / 3600))}h`;
}

export const relative = (time, now) => (time >= now ? `in ${stretch(time - now)}` : `${stretch(now - time)} ago`);

const formats = new Map();
function format(zone, name, options) {
  const key = `${zone} ${name}`;
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat('en-GB', { timeZone: zone, hourCycle: 'h23', ...options }));
  return formats.get(key);
}

const parts = (time, zone) => Object.fromEntries(format(zone, 'parts', {
  weekday: 'short', year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit',
  timeZoneName: 'longOffset',
}).formatToParts(time).map(({ type, value }) => [type, value]));
const offsetOf = ({ timeZoneName }) => timeZoneName.slice(3) || '+00:00';

export const clock = (time, zone) => format(zone, 'clock', { hour: '2-digit', minute: '2-digit' }).format(time);
export const date = (time, zone) => format(zone, 'date', { weekday: 'short', day: 'numeric', month: 'short' }).format(time).replace(',', '');
// As the commands write it.
export const moment = (time, zone) => {
  const at = parts(time, zone);
  return `${at.weekday} ${at.year}-${at.month}-${at.day} ${at.hour}:${at.minute}:${at.second} ${offsetOf(at)}`;
};
// Without the year, the zone and seconds of 0.
export const brief = (time, zone) => {
  const { hour, minute, second } = parts(time, zone);
  return `${date(time, zone)} ${hour}:${minute}${second === '00' ? '' : `:${second}`}`;
};
// A day of a calendar, with its weekday.
export const wholeDay = (day) => format('UTC', 'day', { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' }).format(new Date(`${day}T12:00:00Z`)).replace(',', '');
export const isoDay = (time, zone) => {
  const at = parts(time, zone);
  return `${at.year}-${at.month}-${at.day}`;
};
// The milliseconds by which the zone is ahead of UTC.
export const offset = (time, zone) => {
  const [hours, minutes = 0] = offsetOf(parts(time, zone)).split(':').map(Number);
  return (hours * 60 + (hours < 0 ? -minutes : Number(minutes))) * 60e3;
};

// Each urgency has a sign, so that it can be told without its colour. Those of 'never' and 'soon' are filters alone.
export const STATES = {
  overdue: ['▲', 'overdue'], stuck: ['⊘', 'cannot run'], blocked: ['■', 'blocked'], failed: ['✖', 'failing'], growing: ['≡', 'piling up'],
  never: ['○', 'never succeeded'], soon: ['◷', 'due in the next hour'], fine: ['●', 'on schedule'],
  frozen: ['❄', 'frozen'], stopped: ['‖', 'suspended'],
};
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// The times in the server's sentences are in the zone of the schedule. On the page, one zone holds for all.
const MOMENT = /\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) ([+-]\d\d:\d\d)/g;
export const inZone = (text, zone) => text.replace(MOMENT, (all, day, time, by) => {
  const at = Date.parse(`${day}T${time}${by}`);
  return Number.isNaN(at) ? all : moment(at, zone);
});

// A browser breaks lines behind each hyphen, and so within names and flags. A word like that is one piece while there is room for it.
export const pieces = (text) => text.split(' ').map((word, i) => html`${i > 0 && ' '}${word.length > 2 && /[-/=]/.test(word) ? html`<span class="piece">${word}</span>` : word}`);
export const prose = (text, zone) => pieces(inZone(text, zone));

// Of those that are stopped on purpose, a freeze of the namespace is told apart.
export const stateOf = row => row.state === 'frozen' ? STATES.frozen : STATES[row.urgency];

export const RESULTS = {
  waiting: ['◌', 'waiting'], running: ['◐', 'running'], succeeded: ['✔', 'succeeded'], failed: ['✖', 'failed'], gone: ['–', 'Job no longer exists'],
};

// A Job without a slot was not created by a controller.
export const kind = (run) => (run.ofBackfill ? ' (backfill)' : run.slot ? '' : ' (manual)');

export const REASONS = {
  forbid: 'blocked', max_concurrent: 'at its limit', replacing: 'replacing', paused: 'paused', passed_over: 'passed over', deadline: 'deadline',
  name_taken: 'name taken', suspended: 'suspended', frozen: 'frozen', invalid: 'invalid', not_started: 'not started', none: '',
};

export function Copy({ text, label = 'Copy' }) {
  const [done, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    set(true);
    setTimeout(() => set(false), 1500);
  };
  return html`<button type="button" class="copy" onClick=${copy} aria-label=${`${label}: ${text.split('\n')[0]}`}>${done ? 'Copied' : label}</button>`;
}

export const parseName = (cj) => {
  const at = cj.indexOf('/');
  return { namespace: cj.slice(0, Math.max(at, 0)), name: cj.slice(at + 1) };
};
