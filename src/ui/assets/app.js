// The page: the strip, the filters and the views.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from './vendor/htm-preact-3.1.1.js';
import { Detail } from './detail.js';
import { GroupBy, Groups } from './groups.js';
import { Heat } from './heat.js';
import { copyLogs, onSaid } from './logs.js';
import { Night } from './night.js';
import { Shadow } from './shadow.js';
import { begin } from './session.js';
import { isOffset, selection, setNow, useAnswer, useUrlState, useVersion, zoneNamed } from './state.js';
import { Table } from './table.js';
import { Timeline } from './timeline.js';
import { STATES, clock, count, isoDay, moment, parseName, prose, sentence } from './words.js';

const VIEWS = { table: 'Table', heat: 'Heat map', timeline: 'Timeline', night: 'Night and next hour', shadow: 'Shadow' };
const ZONES = Intl.supportedValuesOf?.('timeZone') ?? [];
// The tiles: each selects what it counts.
const TILES = ['overdue', 'stuck', 'blocked', 'failed', 'growing', 'never', 'soon', 'frozen'];
// Those that are left out while they count nothing.
const RARE = ['growing', 'frozen'];
// What is shown while nothing is known yet.
const NOTHING = { states: {}, namespaces: {}, trouble: [], banners: [], freezes: [], unknown: [], labelKeys: [], outage: null, synced: false, cronJobs: 0, hottest: null };

function Strip({ summary, state, change }) {
  const number = (value) => value.toLocaleString('en-US');
  const { hottest } = summary;
  const pick = (name) => () => change({ view: 'table', state: state.state === name ? '' : name, ...(name === 'soon' ? { sort: 'next', reverse: '' } : {}) });
  const minute = hottest && new Date(hottest.at);
  const show = () => change({ view: 'heat', day: isoDay(minute, state.zone), minute: minute.toISOString() });
  return html`<section class="strip" aria-label="Summary" role="region">
    <button type="button" class="tile total" onClick=${() => change({ view: 'table', state: '' })} aria-pressed=${state.state === ''}><b>${count(summary.cronJobs, 'CronJob')}</b></button>
    ${TILES.filter((name) => summary.states[name] > 0 || state.state === name || !RARE.includes(name)).map((name) => {
    const value = summary.states[name] ?? 0;
    return html`<button type="button" class=${`tile ${value > 0 ? name : ''}`} data-state=${name} onClick=${pick(name)} aria-pressed=${state.state === name}><b>${number(value)}</b> ${STATES[name][1]}</button>`;
  })}
    ${hottest
    ? html`<button type="button" class="tile" onClick=${show}>hottest minute <b>${clock(minute, state.zone)}</b> with ${count(hottest.starts, 'start')}</button>`
    : html`<span class="tile">no start in the next 24 hours</span>`}
  </section>`;
}

// A name that is no zone stays in its field, and changes nothing.
function ZoneField({ zone, change }) {
  const [text, set] = useState(zone);
  useEffect(() => set(zone), [zone]);
  const isWrong = !zoneNamed(text);
  const take = (event) => {
    const name = zoneNamed(event.target.value);
    if (name) change({ zone: name });
    if (name === zone) set(zone);
  };
  return html`<label class="zone-field">Times in <input type="text" list="zones" value=${text} aria-invalid=${isWrong} onInput=${(event) => set(event.target.value)}
      onChange=${take} onBlur=${() => isWrong && set(zone)} aria-describedby=${isWrong ? 'zone-mark' : undefined} />
    <datalist id="zones">${ZONES.map((name) => html`<option value=${name} />`)}</datalist>
    ${isWrong && html`<small role="alert" id="zone-mark">${isOffset(text) ? 'an offset is not a time zone, which has a name such as Europe/Berlin' : 'not a time zone'}; times stay in ${zone}</small>`}</label>`;
}

function Filters({ summary, state, change, search }) {
  const namespaces = Object.keys(summary.namespaces);
  if (state.namespace && !namespaces.includes(state.namespace)) namespaces.push(state.namespace);
  return html`<div class="filters" role="search">
    <label class="search"><span class="hidden">Search</span><input type="search" ref=${search} placeholder="Search (/)" value=${state.q}
      onInput=${(event) => change({ q: event.target.value })} /></label>
    <label>Namespace <select value=${state.namespace} onChange=${(event) => change({ namespace: event.target.value })}>
      <option value="">all</option>${namespaces.map((name) => html`<option value=${name} selected=${name === state.namespace}>${name}${summary.namespaces[name] === undefined ? '' : ` (${summary.namespaces[name]})`}</option>`)}</select></label>
    <label>State <select value=${state.state} onChange=${(event) => change({ state: event.target.value })}>
      <option value="">all</option>${Object.entries(STATES).map(([name, [sign, word]]) => html`<option value=${name} selected=${name === state.state}>${`${sign} ${sentence(word)} (${summary.states[name] ?? 0})`}</option>`)}</select></label>
    <${GroupBy} state=${state} change=${change} labelKeys=${summary.labelKeys} />
    <${ZoneField} zone=${state.zone} change=${change} />
  </div>`;
}

const HELP = [['/', 'search'], ['1 2 3 4 5', 'table, heat map, timeline, night and next hour, a shadow'], ['↑ ↓ j k', 'move in the table'], ['Enter', 'open a CronJob'],
  ['l', 'copy the command that prints its log'], ['← → + −', 'move and zoom the timeline; arrows move in the heat map and in the last slots of a CronJob'], ['Esc', 'close, and back to the row'], ['?', 'this help']];

// What is wrong with the page as a whole, the worst first.
function Notices({ summary, state, change, error, isConnected }) {
  const { outage, trouble, banners } = summary;
  const since = outage && moment(Date.parse(outage.since), state.zone);
  const lines = [];
  if (!isConnected) lines.push(['lost', 'cronjob-controller does not answer any more. This page shows what it said last; open the link that it prints when it is started again.']);
  if (outage) lines.push(['lost', summary.synced ? `Not live since ${since}: ${outage.why} Every state and every time below is as of then.` : `CronJobs are not known yet. ${outage.why}`]);
  else for (const text of trouble) lines.push(['', text]);
  for (const { text, ...found } of outage ? [] : banners) lines.push(['fleet', text, found]);
  for (const text of summary.synced ? summary.unknown : []) lines.push(['', text]);
  if (error) lines.push(['', error]);
  if (state.wrong.length > 0) lines.push(['', `The link has ${state.wrong.join(', ')}, which means nothing here, and is left out.${state.wrong.some((one) => one.startsWith('zone=')) ? ` Times are in ${state.zone}; a time zone has a name such as Europe/Berlin.` : ''}`]);
  return lines.length > 0 && html`<div class="error" role="alert">${lines.map(([name, text, found]) => html`<p class=${name}>${prose(text, state.zone)}
    ${typeof found?.q === 'string' && html` <button type="button" class="copy" onClick=${() => change({ view: 'table', state: 'overdue', q: found.q, namespace: found.namespace ?? '', label: '', image: '' })}>Show them</button>`}</p>`)}</div>`;
}

// The freezes of namespaces, which are meant.
const Freezes = ({ freezes, zone, change }) => freezes.length > 0 && html`<div class="freezes" role="status">${freezes.map(({ text, namespace }) => html`<p><span aria-hidden="true">${STATES.frozen[0]}</span> ${prose(text, zone)}
  <button type="button" class="copy" onClick=${() => change({ view: 'table', state: 'frozen', q: '', namespace, label: '', image: '' })}>Show them</button></p>`)}</div>`;

// A view that fails leaves the rest of the page.
function View({ name, phone, ...shared }) {
  const [failure, reset] = useErrorBoundary();
  useEffect(() => { if (failure) reset(); }, [name, shared.state]);
  if (failure) return html`<p class="error" role="alert">This view cannot be drawn: ${failure.message}</p>`;
  if (name === 'shadow') return html`<${Shadow} ...${shared} />`;
  if (name === 'night') return html`<${Night} ...${shared} />`;
  return name === 'heat' ? html`<${Heat} ...${shared} />` : name === 'timeline' ? html`<${Timeline} ...${shared} />` : html`<${Table} ...${shared} phone=${phone} />`;
}

// What was copied, for some seconds.
function Said() {
  const [text, set] = useState('');
  useEffect(() => onSaid((said) => { set(said); setTimeout(() => set(''), 4000); }), []);
  return html`<p class="said" role="status">${text}</p>`;
}

function useKeys(latest, { setHelp, change, search }) {
  useEffect(() => {
    const keys = (event) => {
      const { state, help } = latest.current;
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== 'range';
      if (event.key === 'Escape') {
        if (help) setHelp(false);
        else if (state.cj) change({ cj: '', job: '' });
        else event.target.blur?.();
      }
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const view = { 1: 'table', 2: 'heat', 3: 'timeline', 4: 'night', 5: 'shadow' }[event.key];
      if (view) change({ view });
      if (event.key === '/') { event.preventDefault(); search.current?.focus(); }
      if (event.key === '?') setHelp((shown) => !shown);
      if (event.key === 'l' && state.cj) copyLogs(parseName(state.cj));
    };
    // A click is not meant for what comes next: Enter would undo it.
    const clicked = ({ detail, target }) => { if (detail > 0) target.closest?.('header button, nav button, .groups button, .error button')?.blur(); };
    addEventListener('keydown', keys);
    addEventListener('click', clicked);
    return () => {
      removeEventListener('keydown', keys);
      removeEventListener('click', clicked);
    };
  }, []);
}

function usePhone() {
  const query = matchMedia('(max-width: 720px)');
  const [phone, setPhone] = useState(query.matches);
  useEffect(() => {
    const resize = () => setPhone(query.matches);
    query.addEventListener('change', resize);
    return () => query.removeEventListener('change', resize);
  }, []);
  return phone;
}

function App() {
  const [state, change] = useUrlState();
  const { version, live } = useVersion();
  const [help, setHelp] = useState(false);
  const phone = usePhone();
  const search = useRef();
  const latest = useRef();
  latest.current = { state, help };
  useKeys(latest, { setHelp, change, search });
  const { value, error } = useAnswer('summary', selection({ ...state, sort: '', reverse: '' }), version);
  const summary = value ?? NOTHING;
  if (value) setNow(value.now, !!value.outage);
  const views = Object.entries(VIEWS).filter(([name]) => name !== 'shadow' || summary.hasShadow);
  const view = views.some(([name]) => name === state.view) ? state.view : 'table';
  const shared = { state, change, version };
  const isConnected = live || version === 0;
  const status = !live ? (version > 0 ? 'not connected' : '') : summary.outage ? 'not live' : summary.isFiles ? 'manifests' : 'live';
  return html`
    <header>
      <h1>CronJobs</h1>
      ${summary.synced && html`<${Strip} summary=${summary} ...${shared} />`}
      <span class=${`live ${live && !summary.outage ? 'on' : ''}`} role="status">${status}</span>
    </header>
    <nav aria-label="Views and filters">
      <span class="views" role="group" aria-label="View">${views.map(([name, title]) => html`<button type="button" aria-pressed=${view === name} onClick=${() => change({ view: name })}>${title}</button>`)}</span>
      <${Filters} summary=${summary} search=${search} ...${shared} />
      <button type="button" class="copy" onClick=${() => setHelp(!help)} aria-expanded=${help} aria-label="Keys">?</button>
    </nav>
    <${Notices} summary=${summary} state=${state} change=${change} error=${error} isConnected=${isConnected} />
    ${summary.synced && html`<${Freezes} freezes=${summary.freezes} zone=${state.zone} change=${change} />`}
    ${!summary.synced && html`<p class="empty" role="status">${summary.outage || summary.trouble.length > 0 ? 'No CronJob is shown, because none can be read.' : 'Reading the cluster …'}</p>`}
    <main class=${state.cj ? 'with-detail' : ''}>
      <div class="view">${summary.synced && state.group && html`<${Groups} ...${shared} />`}${summary.synced && html`<${View} key=${view} name=${view} phone=${phone} ...${shared} />`}</div>
      ${state.cj && summary.synced && html`<${Detail} ...${shared} />`}
    </main>
    <${Said} />
    <svg width="0" height="0" aria-hidden="true"><defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect width="3" height="6" class="stripe" /></pattern></defs></svg>
    ${help && html`<div class="help" role="dialog" aria-label="Keys"><dl>${HELP.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
      <button type="button" onClick=${() => setHelp(false)}>Close</button></div>`}`;
}

const NoSession = ({ why }) => html`<main><div class="no-session"><h1>No session</h1><p class="error" role="alert">${why}</p></div></main>`;

const root = document.getElementById('app');
begin((why) => {
  document.getElementById('reading')?.remove();
  render(why ? html`<${NoSession} why=${why} />` : html`<${App} />`, root);
});
