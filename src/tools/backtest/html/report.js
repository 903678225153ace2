
(() => {
  const list = document.getElementById('list'), find = document.getElementById('find'), shown = document.getElementById('shown');
  const card = document.getElementById('card'), svg = document.querySelector('.scroll > svg');
  const rows = [...list.querySelectorAll('tr')].map(row => [row, row.textContent.toLowerCase()]);
  const circles = svg ? [...svg.querySelectorAll('circle')] : [];
  const lanes = svg ? [...svg.querySelectorAll('.lane')] : [];
  let rule = null;
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const on = new Set();
    let count = 0;
    for (const [row, text] of rows) {
      const fits = (!rule || row.dataset.rule.split('\n').includes(rule)) && words.every(word => text.includes(word));
      row.hidden = !fits;
      if (fits) { count += 1; on.add(row.id); }
    }
    const some = rule || words.length;
    shown.textContent = some ? count + ' of ' + rows.length + (rule ? ' · only ' + rule + ' (click again to clear)' : '') : rows.length + ' entries';
    if (svg) svg.classList.toggle('only', Boolean(some));
    for (const circle of circles) circle.classList.toggle('on', on.has('m' + circle.dataset.i));
    for (const lane of lanes) lane.classList.toggle('on', lane.dataset.rule === rule);
  };
  const choose = name => { rule = rule === name ? null : name; filter(); };
  find.addEventListener('input', filter);
  for (const lane of lanes) {
    lane.addEventListener('click', () => choose(lane.dataset.rule));
    lane.addEventListener('keydown', event => { if (event.key === 'Enter') choose(lane.dataset.rule); });
  }
  for (const link of document.querySelectorAll('a.rule')) link.addEventListener('click', () => { rule = null; choose(link.dataset.rule); });
  const row = circle => document.getElementById('m' + circle.dataset.i);
  if (svg) {
    svg.addEventListener('mouseover', event => {
      const circle = event.target.closest('circle'), of = circle && row(circle);
      if (!of) { card.hidden = true; return; }
      const cells = of.querySelectorAll('td');
      card.replaceChildren();
      for (const [text, dim] of [[cells[2].querySelector('b').textContent, false], [cells[0].innerText.replace('\n', ' ') + ' · ' + cells[2].querySelector('p.dim').textContent, true]]) {
        const line = document.createElement('div');
        line.textContent = text;
        if (dim) line.className = 'dim';
        card.append(line);
      }
      card.hidden = false;
      const box = circle.getBoundingClientRect(), own = card.getBoundingClientRect();
      card.style.left = Math.max(8, Math.min(box.left + 12, innerWidth - own.width - 8)) + 'px';
      card.style.top = (box.bottom + own.height + 16 > innerHeight ? box.top - own.height - 8 : box.bottom + 8) + 'px';
    });
    svg.addEventListener('mouseleave', () => { card.hidden = true; });
    svg.addEventListener('click', event => {
      const circle = event.target.closest('circle'), of = circle && row(circle);
      if (!of) return;
      if (of.hidden) { rule = null; find.value = ''; filter(); }
      for (const hit of list.querySelectorAll('.hit')) hit.classList.remove('hit');
      of.classList.add('hit');
      of.scrollIntoView({ block: 'center', behavior: 'smooth' });
    });
  }
  filter();
})();
