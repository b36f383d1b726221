// A list of which only the visible rows exist, and are asked of the server. Its rows are as high as what is in them.
import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor/htm-preact-3.1.1.js';
import { get } from './state.js';

// So many rows beyond those in view are drawn, and at least so many more are known.
const MARGIN = 6;
const CHUNK = 40;
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

export function VirtualList({ path, params, version, height, label, header, render, onTotal, onOpen, onLogs, isOpen, place, chunk = CHUNK }) {
  const scroller = useRef();
  const heights = useRef(new Map());
  const [view, setView] = useState({ top: 0, size: 600 });
  const [page, setPage] = useState({ total: null, offset: 0, rows: [], error: null });
  const [active, setActive] = useState(0);
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
  useEffect(() => { scroller.current.scrollTop = 0; heights.current.clear(); setActive(0); }, [place ?? key]);
  // An answer counts unless a later one came first: while someone scrolls, rows that were asked for a moment ago are of use.
  const asked = useRef({ key, number: 0, shown: 0 });
  useEffect(() => {
    const { current } = asked;
    current.key = key;
    current.number += 1;
    const { number } = current;
    const counts = () => current.key === key && number > current.shown;
    get(path, { ...params, offset: from, limit: wanted }).then(
      (answer) => { if (counts()) { current.shown = number; setPage({ ...answer, error: null }); onTotal?.(answer.total); } },
      (error) => counts() && setPage((before) => ({ ...before, error: error.message })),
    );
  }, [key, version, from, wanted]);
  useEffect(() => () => { asked.current.key = null; }, []);
  // The keys work from the first moment, and again when a CronJob is closed.
  useEffect(() => { if (!isOpen && document.activeElement === document.body) scroller.current.focus({ preventScroll: true }); }, [isOpen]);

  const move = (event) => {
    const isHere = event.target === scroller.current || (event.target === document.body && !isOpen);
    if (!isHere || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = page.rows[active - page.offset];
    if (row && event.key === 'Enter') return onOpen?.(row);
    if (row && event.key === 'l') return onLogs?.(row);
    const step = STEPS[event.key];
    if (step === undefined || !total) return;
    event.preventDefault();
    const next = Math.min(Math.max(active + step, 0), total - 1);
    setActive(next);
    const element = scroller.current;
    const head = element.querySelector('.head')?.offsetHeight ?? 0;
    if (all[next] < element.scrollTop) element.scrollTop = all[next];
    else if (all[next + 1] + head > element.scrollTop + element.clientHeight) element.scrollTop = all[next + 1] + head - element.clientHeight;
  };

  // A click beside everything takes the focus away, and not the keys.
  const latest = useRef();
  latest.current = move;
  useEffect(() => {
    const hear = (event) => { if (event.target === document.body) latest.current(event); };
    addEventListener('keydown', hear);
    return () => removeEventListener('keydown', hear);
  }, []);

  const drawn = Array.from({ length: Math.max(last - first, 0) }, (_, i) => first + i);
  const isShown = active >= first && active < last && page.rows[active - page.offset] !== undefined;
  return html`
    ${page.error && html`<p class="error" role="alert">${page.error}</p>`}
    <div class="scroller" ref=${scroller} tabindex="0" onKeyDown=${move} role="grid" aria-label=${label}
         aria-activedescendant=${isShown ? `row-${active}` : undefined}
         aria-rowcount=${total + 1} onScroll=${(event) => setView({ top: event.target.scrollTop, size: event.target.clientHeight })}>
      ${header}
      <div class="rows" role="rowgroup" style=${{ height: `${all[total]}px` }}>
        ${drawn.map((at) => {
    const row = page.rows[at - page.offset];
    const style = { top: `${all[at] ?? 0}px`, minHeight: `${height}px` };
    if (!row) return html`<div class="row waiting" role="row" aria-rowindex=${at + 2} key=${at} style=${style}><div class="cell name" role="gridcell">…</div></div>`;
    return html`<div class=${`row ${row.urgency ?? ''} ${at === active ? 'active' : ''}`} role="row" key=${`${row.namespace}/${row.name}`}
               id=${`row-${at}`} data-at=${at} aria-selected=${at === active} onClick=${() => setActive(at)} aria-rowindex=${at + 2} style=${style}>
            ${render(row)}
          </div>`;
  })}
      </div>
      ${page.total === 0 && html`<p class="empty">No CronJob matches.</p>`}
    </div>`;
}
