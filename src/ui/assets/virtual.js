// A list of which only the visible rows exist, and are asked of the server. Its rows are as high as what is in them.
import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor/htm-preact-3.1.1.js';
import { get } from './state.js';

// So many rows beyond those in view are drawn, and at least so many more are known.
const MARGIN = 6;
const CHUNK = 40;
// The keys of text are not those of the list.
const TEXT = 'input, select, textarea, [contenteditable]';
// What Enter does something with by itself.
const PRESSED = 'a, button, summary, [role="button"], [role="gridcell"][tabindex]';
const STEPS = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

// The tops of rows: each as high as it was measured, or as high as `guess`.
function tops(heights, total, guess) {
  const all = new Array(total + 1);
  all[0] = 0;
  for (let i = 0; i < total; i += 1) all[i + 1] = all[i] + (heights.get(i) ?? guess);
  return all;
}

// The number of the row that is at a height.
function rowAt(all, top) {
  let [low, high] = [0, all.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (all[middle] <= top) low = middle;
    else high = middle - 1;
  }
  return low;
}

const NONE = { at: 0, row: null };
const isSame = (a, b) => !!a && !!b && a.namespace === b.namespace && a.name === b.name;

export function VirtualList({ path, params, version, height, label, header, render, onTotal, onOpen, onLogs, isOpen, place, chunk = CHUNK }) {
  const scroller = useRef();
  const heights = useRef(new Map());
  const [view, setView] = useState({ top: 0, size: 600 });
  const [page, setPage] = useState({ total: null, offset: 0, rows: [], error: null, of: null });
  // The active CronJob, and the row where it was last. A row may move or vanish; Enter opens the one that was chosen.
  const [active, setActive] = useState(NONE);
  const [, measured] = useState(0);
  const key = JSON.stringify([path, params]);

  const total = page.total ?? 0;
  const all = tops(heights.current, total, height);
  const first = Math.max(0, rowAt(all, view.top) - MARGIN);
  const last = Math.min(total, first + Math.ceil(view.size / height) + 2 * MARGIN);
  // What is known of is in steps, so that not every turn of a wheel asks anew. The first rows must not wait for others.
  const from = page.total === null ? 0 : Math.max(0, Math.floor((first - chunk) / chunk) * chunk);
  const wanted = page.total === null ? Math.ceil(view.size / height) + MARGIN : Math.ceil((last + chunk) / chunk) * chunk - from;

  useLayoutEffect(() => {
    const element = scroller.current;
    let width = element.clientWidth;
    const measure = () => {
      // Other widths wrap the words elsewhere.
      if (element.clientWidth !== width) heights.current.clear();
      width = element.clientWidth;
      setView({ top: element.scrollTop, size: element.clientHeight || 600 });
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    let changed = false;
    for (const row of scroller.current.querySelectorAll('.rows > .row[data-at]')) {
      const at = Number(row.dataset.at);
      if (row.offsetHeight > 0 && heights.current.get(at) !== row.offsetHeight) {
        heights.current.set(at, row.offsetHeight);
        changed = true;
      }
    }
    if (changed) measured((n) => n + 1);
  });
  // Other rows begin at the top. The same rows at a later time stay where they are.
  useEffect(() => { scroller.current.scrollTop = 0; heights.current.clear(); setActive(NONE); }, [place ?? key]);
  // An answer counts unless a later one came first: while someone scrolls, rows that were asked for a moment ago are of use.
  const asked = useRef({ key, number: 0, shown: 0 });
  useEffect(() => {
    const { current } = asked;
    current.key = key;
    current.number += 1;
    const { number } = current;
    const counts = () => current.key === key && number > current.shown;
    get(path, { ...params, offset: from, limit: wanted }).then(
      (answer) => { if (counts()) { current.shown = number; setPage({ ...answer, error: null, of: key }); onTotal?.(answer.total); } },
      (error) => counts() && setPage((before) => ({ ...before, error: error.message })),
    );
  }, [key, version, from, wanted]);
  useEffect(() => () => { asked.current.key = null; }, []);
  // Where the active CronJob is now, and which one it is if only its row was known.
  const found = page.rows.findIndex((row) => isSame(row, active.row));
  useEffect(() => {
    const row = page.rows[active.at - page.offset];
    if (found >= 0 && page.offset + found !== active.at) setActive({ ...active, at: page.offset + found });
    else if (!active.row && row && page.of === key) setActive({ at: active.at, row });
  });
  // The keys work from the first moment, and again when a CronJob is closed.
  useEffect(() => { if (!isOpen && document.activeElement === document.body) scroller.current.focus({ preventScroll: true }); }, [isOpen]);

  const move = (event) => {
    const { target, key: pressed } = event;
    const inPanel = target.closest('[role="dialog"]');
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || target.closest(TEXT)) return;
    // In a panel, the keys of the panel scroll it.
    if (scroller.current.offsetParent === null || (inPanel && pressed !== 'j' && pressed !== 'k')) return;
    if (active.row && pressed === 'Enter' && !target.closest(PRESSED)) return onOpen?.(active.row);
    if (active.row && pressed === 'l' && !isOpen) return onLogs?.(active.row);
    const step = STEPS[pressed];
    if (step === undefined || !total) return;
    event.preventDefault();
    // Where one has vanished, the next one is.
    const at = found < 0 && page.rows[active.at - page.offset] && active.row && step > 0 ? active.at - 1 : active.at;
    const next = Math.min(Math.max(at + step, 0), total - 1);
    setActive({ at: next, row: page.rows[next - page.offset] ?? null });
    const element = scroller.current;
    element.focus({ preventScroll: true });
    const head = element.querySelector('.head')?.offsetHeight ?? 0;
    if (all[next] < element.scrollTop) element.scrollTop = all[next];
    else if (all[next + 1] + head > element.scrollTop + element.clientHeight) element.scrollTop = all[next + 1] + head - element.clientHeight;
  };

  // The keys work wherever the focus is.
  const latest = useRef();
  latest.current = move;
  useEffect(() => {
    const hear = (event) => latest.current(event);
    addEventListener('keydown', hear);
    return () => removeEventListener('keydown', hear);
  }, []);

  const drawn = Array.from({ length: Math.max(last - first, 0) }, (_, i) => first + i);
  const isShown = found >= 0 && page.offset + found >= first && page.offset + found < last;
  return html`
    ${page.error && html`<p class="error" role="alert">${page.error}</p>`}
    <div class="scroller" ref=${scroller} tabindex="0" role="grid" aria-label=${label}
         aria-activedescendant=${isShown ? `row-${page.offset + found}` : undefined}
         aria-rowcount=${total + 1} onScroll=${(event) => setView({ top: event.target.scrollTop, size: event.target.clientHeight })}>
      ${header}
      <div class="rows" role="rowgroup" style=${{ height: `${all[total]}px` }}>
        ${drawn.map((at) => {
    const row = page.rows[at - page.offset];
    const style = { top: `${all[at] ?? 0}px`, minHeight: `${height}px` };
    if (!row) return html`<div class="row waiting" role="row" aria-rowindex=${at + 2} key=${at} style=${style}><div class="cell name" role="gridcell">…</div></div>`;
    const isActive = isSame(row, active.row);
    return html`<div class=${`row ${row.urgency ?? ''} ${isActive ? 'active' : ''}`} role="row" key=${`${row.namespace}/${row.name}`}
               id=${`row-${at}`} data-at=${at} aria-selected=${isActive} onClick=${() => setActive({ at, row })} aria-rowindex=${at + 2} style=${style}>
            ${render(row)}
          </div>`;
  })}
        ${!page.total && html`<div class="empty" role="row"><div role="gridcell">${page.total === 0 ? 'No CronJob matches.' : page.error ? '' : '…'}</div></div>`}
      </div>
    </div>`;
}
