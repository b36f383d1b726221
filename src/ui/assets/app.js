// The page: the strip, the filters and the views.
import { html, render, useEffect, useRef, useState } from './vendor/htm-preact-3.1.1.js';
import { Detail } from './detail.js';
import { Heat } from './heat.js';
import { begin } from './session.js';
import { LOCAL_ZONE, selection, setNow, useAnswer, useUrlState, useVersion } from './state.js';
import { Table } from './table.js';
import { Timeline } from './timeline.js';
import { STATES, clock, count, isoDay } from './words.js';

const VIEWS = { table: 'Table', heat: 'Heat map', timeline: 'Timeline' };

function Strip({ summary, state, change }) {
  const number = (value) => value.toLocaleString('en-US');
  const { hottest } = summary;
  const pick = (name) => () => change({ view: 'table', state: state.state === name ? '' : name });
  const tile = (value, label, className, onClick, pressed) => onClick
    ? html`<button type="button" class=${`tile ${value > 0 ? className : ''}`} onClick=${onClick} aria-pressed=${pressed}><b>${number(value)}</b> ${label}</button>`
    : html`<span class=${`tile ${value > 0 ? className : ''}`}><b>${number(value)}</b> ${label}</span>`;
  const minute = hottest && new Date(hottest.at);
  const show = () => change({ view: 'heat', day: isoDay(minute, state.zone), minute: minute.toISOString() });
  return html`<section class="strip" aria-label="Summary" role="region">
    <b class="tile total">${count(summary.cronJobs, 'CronJob')}</b>
    ${tile(summary.dueNextHour, 'due in the next hour', '', () => change({ view: 'table', sort: 'next', reverse: '' }))}
    ${tile(summary.overdue, 'overdue', 'overdue', pick('overdue'), state.state === 'overdue')}
    ${tile(summary.blocked, 'blocked', 'blocked', pick('blocked'), state.state === 'blocked')}
    ${tile(summary.failing, 'failing', 'failed', () => change({ view: 'table', sort: 'failures', reverse: '' }))}
    ${tile(summary.neverSucceeded, 'never succeeded', 'failed')}
    ${hottest
    ? html`<button type="button" class="tile" onClick=${show}>hottest minute <b>${clock(minute, state.zone)}</b> with ${count(hottest.starts, 'start')}</button>`
    : html`<span class="tile">no start in the next 24 hours</span>`}
  </section>`;
}

function Filters({ summary, state, change, search }) {
  const namespaces = Object.keys(summary.namespaces);
  if (state.namespace && !namespaces.includes(state.namespace)) namespaces.push(state.namespace);
  return html`<div class="filters" role="search">
    <label class="search"><span class="hidden">Search</span><input type="search" ref=${search} placeholder="Search (/)" value=${state.q}
      onInput=${(event) => change({ q: event.target.value })} /></label>
    <label>Namespace <select value=${state.namespace} onChange=${(event) => change({ namespace: event.target.value })}>
      <option value="">all</option>${namespaces.map((name) => html`<option value=${name} selected=${name === state.namespace}>${name}${summary.namespaces[name] ? ` (${summary.namespaces[name]})` : ''}</option>`)}</select></label>
    <label>State <select value=${state.state} onChange=${(event) => change({ state: event.target.value })}>
      <option value="">all</option>${Object.entries(STATES).map(([name, [sign, word]]) => html`<option value=${name} selected=${name === state.state}>${`${sign} ${word} (${summary.states[name] ?? 0})`}</option>`)}</select></label>
  </div>`;
}

const HELP = [['/', 'search'], ['1 2 3', 'table, heat map, timeline'], ['↑ ↓ j k', 'move in the table'], ['Enter', 'open a CronJob'],
  ['← → + −', 'move and zoom the timeline; arrows move in the heat map'], ['Esc', 'close'], ['?', 'this help']];

function App() {
  const [state, change] = useUrlState();
  const { version, live } = useVersion();
  const [help, setHelp] = useState(false);
  const query = matchMedia('(max-width: 720px)');
  const [phone, setPhone] = useState(query.matches);
  const search = useRef();
  const latest = useRef();
  latest.current = { state, help };
  const { value: summary, error } = useAnswer('summary', selection({ ...state, sort: '', reverse: '' }), version);
  if (summary) setNow(summary.now);
  useEffect(() => {
    const resize = () => setPhone(query.matches);
    query.addEventListener('change', resize);
    const keys = (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== 'range';
      if (event.key === 'Escape') {
        if (latest.current.help) setHelp(false);
        else if (latest.current.state.cj) change({ cj: '' });
        else event.target.blur?.();
      }
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const view = { 1: 'table', 2: 'heat', 3: 'timeline' }[event.key];
      if (view) change({ view });
      if (event.key === '/') { event.preventDefault(); search.current?.focus(); }
      if (event.key === '?') setHelp((shown) => !shown);
    };
    addEventListener('keydown', keys);
    return () => { query.removeEventListener('change', resize); removeEventListener('keydown', keys); };
  }, []);
  if (!summary) return html`<main><h1 class="hidden">CronJobs</h1><p class="empty" role="status">${error ?? 'Reading CronJobs …'}</p></main>`;
  const view = VIEWS[state.view] ? state.view : 'table';
  const shared = { state, change, version };
  return html`
    <header>
      <h1>CronJobs</h1>
      <${Strip} summary=${summary} ...${shared} />
      <span class=${`live ${live ? 'on' : ''}`} role="status">${live ? (summary.isFiles ? 'manifests' : 'live') : version > 0 ? 'not connected' : ''}</span>
    </header>
    <nav aria-label="Views and filters">
      <span class="views" role="group" aria-label="View">${Object.entries(VIEWS).map(([name, title]) => html`<button type="button" aria-pressed=${view === name} onClick=${() => change({ view: name })}>${title}</button>`)}</span>
      <${Filters} summary=${summary} search=${search} ...${shared} />
      ${state.zone !== LOCAL_ZONE && html`<button type="button" class="copy" onClick=${() => change({ zone: LOCAL_ZONE })}>Times in ${state.zone}; use ${LOCAL_ZONE}</button>`}
      <button type="button" class="copy" onClick=${() => setHelp(!help)} aria-expanded=${help} aria-label="Keys">?</button>
    </nav>
    ${(error || summary.trouble.length > 0) && html`<div class="error" role="alert">${error && html`<p>${error}</p>`}${summary.trouble.map((text) => html`<p>${text}</p>`)}</div>`}
    ${!live && version > 0 && html`<p class="error" role="alert">cronjob-controller does not answer any more. This page shows what it said last; open the link that it prints when it is started again.</p>`}
    ${!summary.synced && html`<p class="empty" role="status">Reading the cluster …</p>`}
    <main class=${state.cj ? 'with-detail' : ''}>
      <div class="view">
        ${view === 'table' && html`<${Table} ...${shared} phone=${phone} />`}
        ${view === 'heat' && html`<${Heat} ...${shared} />`}
        ${view === 'timeline' && html`<${Timeline} ...${shared} />`}
      </div>
      ${state.cj && summary.synced && html`<${Detail} ...${shared} />`}
    </main>
    ${help && html`<div class="help" role="dialog" aria-label="Keys"><dl>${HELP.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
      <button type="button" onClick=${() => setHelp(false)}>Close</button></div>`}`;
}

const NoSession = ({ why }) => html`<main><div class="no-session"><h1>No session</h1><p class="error" role="alert">${why}</p></div></main>`;

const root = document.getElementById('app');
begin((why) => {
  document.getElementById('reading')?.remove();
  render(why ? html`<${NoSession} why=${why} />` : html`<${App} />`, root);
});
