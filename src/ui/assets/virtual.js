// A list of which only the visible rows exist, and are asked of the server.
import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor/htm-preact-3.1.1.js';
import { get } from './state.js';

const MARGIN = 6;

export function VirtualList({ path, params, version, height, label, header, render, onTotal, role = 'table', onOpen }) {
  const scroller = useRef();
  const [view, setView] = useState({ top: 0, size: 600 });
  const [page, setPage] = useState({ total: null, offset: 0, rows: [], error: null });
  const [active, setActive] = useState(0);
  const key = JSON.stringify([path, params]);

  const first = Math.max(0, Math.floor(view.top / height) - MARGIN);
  const wanted = Math.ceil(view.size / height) + 2 * MARGIN;

  useLayoutEffect(() => {
    const element = scroller.current;
    const measure = () => setView({ top: element.scrollTop, size: element.clientHeight || 600 });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => { scroller.current.scrollTop = 0; setActive(0); }, [key]);
  useEffect(() => {
    const abort = new AbortController();
    get(path, { ...params, offset: first, limit: wanted }, abort.signal).then(
      (answer) => { setPage({ ...answer, error: null }); onTotal?.(answer.total); },
      (error) => error.name !== 'AbortError' && setPage((before) => ({ ...before, error: error.message })),
    );
    return () => abort.abort();
  }, [key, version, first, wanted]);

  const move = (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (event.target !== scroller.current) return;
    if (event.key === 'Enter') {
      const row = page.rows[active - page.offset];
      if (row) onOpen?.(row);
      return;
    }
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey || !page.total) return;
    event.preventDefault();
    const next = Math.min(Math.max(active + step, 0), page.total - 1);
    setActive(next);
    const element = scroller.current;
    const head = element.querySelector('.head')?.offsetHeight ?? 0;
    if (next * height < element.scrollTop) element.scrollTop = next * height;
    else if ((next + 1) * height + head > element.scrollTop + element.clientHeight) {
      element.scrollTop = (next + 1) * height + head - element.clientHeight;
    }
  };

  const total = page.total ?? 0;
  return html`
    ${page.error && html`<p class="error" role="alert">${page.error}</p>`}
    <div class="scroller" ref=${scroller} tabindex="0" onKeyDown=${move} role=${role} aria-label=${label}
         aria-rowcount=${total + 1} onScroll=${(event) => setView({ top: event.target.scrollTop, size: event.target.clientHeight })}>
      ${header}
      <div class="rows" role="rowgroup" style=${{ height: `${total * height}px` }}>
        ${page.rows.map((row, i) => html`
          <div class=${`row ${row.urgency ?? ''} ${page.offset + i === active ? 'active' : ''}`} role="row" key=${`${row.namespace}/${row.name}`}
               aria-rowindex=${page.offset + i + 2} style=${{ top: `${(page.offset + i) * height}px`, height: `${height}px` }}>
            ${render(row)}
          </div>`)}
      </div>
      ${page.total === 0 && html`<p class="empty">No CronJob matches.</p>`}
    </div>`;
}
