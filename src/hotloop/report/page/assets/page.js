(() => {
  "use strict";
  const root = document.documentElement;
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const SERIES = ["--accent", "--change", "--accepted", "--goal", "--bar", "--ink", "--seventh", "--eighth"];

  // Light or dark: as the reader's system has it, until a choice is made.
  const remembered = (() => { try { return localStorage.getItem("hotloop-theme"); } catch { return null; } })();
  const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const setTheme = (theme) => {
    root.dataset.theme = theme;
    document.getElementById("theme").textContent = theme === "dark" ? "light" : "dark";
    plots.forEach((plot) => plot.redraw());
  };
  const plots = [];
  document.getElementById("theme").addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("hotloop-theme", theme); } catch { /* a file may be refused a memory */ }
    setTheme(theme);
  });

  // Numbers as the rest of Hotloop writes them.
  const written = (value, digits = 3) => {
    if (value === null || value === undefined) return "";
    for (const [size, letter] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
      if (Math.abs(value) >= size) return (value / size).toPrecision(digits) + letter;
    }
    return String(Number(value.toPrecision(Math.max(digits, 4))));
  };
  // As many digits as it takes to tell neighbours on an axis apart.
  const ticks = (splits) => {
    const told = splits.filter((value) => value !== null);
    const step = told.length > 1 ? Math.abs(told[1] - told[0]) : 0, most = Math.max(...told.map(Math.abs));
    const digits = step && most ? Math.ceil(Math.log10(most / step)) + 1 : 3;
    return splits.map((value) => written(value, Math.min(Math.max(digits, 3), 8)));
  };

  // A line this many times away from the values is named at the edge: the values stay readable.
  const NEAR = 1.5;

  class Plot {
    constructor(place) {
      this.place = place;
      this.told = JSON.parse(place.dataset.plot);
      this.read = place.parentElement.querySelector(".read");
      this.name();
      this.draw();
      new ResizeObserver(() => this.fit()).observe(place);
    }

    fit() {
      const width = this.place.clientWidth;
      if (width && this.chart && width !== this.chart.width) {
        this.chart.setSize({ width, height: this.place.clientHeight });
      }
    }

    // Which colour is which, where there is more than one.
    name() {
      const named = this.told.series.filter((each) => each.of == null);
      if (named.length < 2) return;
      const keys = document.createElement("div");
      keys.className = "keys";
      named.forEach((each, index) => {
        const key = keys.appendChild(document.createElement("span"));
        key.appendChild(document.createElement("i")).style.background = `var(${SERIES[index % SERIES.length]})`;
        key.append(each.name);
      });
      this.place.before(keys);
    }

    redraw() { this.chart.destroy(); this.draw(); }

    draw() {
      const { x, labels, series, lines = [], marks = [], powers } = this.told;
      const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
      const data = [x], shown = [{}], bands = [];
      series.forEach((each, index) => {
        const stroke = colour(SERIES[(each.of ?? index) % SERIES.length]), law = each.of != null;
        data.push(each.values);
        shown.push({
          label: each.name, stroke, width: law ? 1.2 : 1.6, spanGaps: law,
          points: { show: !law && (each.dots || x.length < 80), size: each.dots ? 7 : 5, fill: each.dots ? stroke : undefined },
          ...(each.dots ? { paths: () => null } : {}),
        });
        if (each.low) {
          data.push(each.high, each.low);
          shown.push({ width: 0, points: { show: false } }, { width: 0, points: { show: false } });
          bands.push({ series: [data.length - 2, data.length - 1], fill: colour("--band") });
        }
      });
      const label = (value) => labels ? labels[value] ?? "" : written(value);
      const options = {
        width: this.place.clientWidth || 500, height: this.place.clientHeight || 230, series: shown, bands,
        scales: powers
          ? { x: { time: false, distr: 3 }, y: { distr: 3 } }
          : { x: { time: false, ...(x.length === 1 ? { range: [x[0] - 1, x[0] + 1] } : {}) }, y: { range: (_, low, high) => this.range(low, high, lines) } },
        axes: [
          { ...axis, space: labels ? 90 : 60, values: (_, splits) => splits.map((value) => label(value)), incrs: labels ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] : undefined },
          { ...axis, size: 66, values: (_, splits) => ticks(splits) },
        ],
        cursor: { y: false, drag: { x: true, y: false, click: () => {} } },
        hooks: {
          draw: [(chart) => this.annotate(chart, lines, marks)],
          setCursor: [(chart) => this.tell(chart, label)],
          ready: [(chart) => {
            chart.over.addEventListener("mousedown", (event) => { this.down = event.offsetX; });
            chart.over.addEventListener("click", (event) => this.openAt(chart, event));
          }],
        },
      };
      this.chart = new uPlot(options, data, this.place);
      this.place.dataset.drawn = "yes";
    }

    // A point that is clicked opens its record; elsewhere a click is the beginning of a double one.
    openAt(chart, event) {
      const { opens, series } = this.told, index = chart.cursor.idx;
      if (!opens || index == null || Math.abs(event.offsetX - this.down) > 3) return;
      const across = chart.valToPos(this.told.x[index], "x"), up = chart.valToPos(series[0].values[index], "y");
      if (Math.hypot(event.offsetX - across, event.offsetY - up) < 14) openRecord(opens[index]);
    }

    range(low, high, lines) {
      const seen = [low, high].filter((value) => value !== null && isFinite(value));
      if (!seen.length) return [0, 1];
      const ends = [...seen, ...lines.map((line) => line.y).filter((y) => y > seen[0] / NEAR && y < seen[seen.length - 1] * NEAR)];
      const bottom = Math.min(...ends), top = Math.max(...ends), room = (top - bottom) * 0.08 || Math.abs(top) * 0.05 || 1;
      return [bottom - room, top + room];
    }

    annotate(chart, lines, marks) {
      const pen = chart.ctx, box = chart.bbox, ratio = devicePixelRatio;
      pen.save();
      pen.font = `${11 * ratio}px system-ui`;
      pen.lineWidth = 1.3 * ratio;
      pen.textAlign = "left";
      pen.textBaseline = "alphabetic";
      const beyond = [0, 0];
      const stroke = (kind) => { pen.strokeStyle = pen.fillStyle = colour(`--${kind}`); };
      lines.forEach((line) => {
        const y = chart.valToPos(line.y, "y", true);
        stroke(line.kind);
        if (y < box.top || y > box.top + box.height) {
          const above = y < box.top, down = 13 * ratio * beyond[Number(above)]++;
          const at = above ? box.top + (marks.length ? 26 : 11) * ratio + down : box.top + box.height - 4 * ratio - down;
          pen.fillText(`${above ? "▲" : "▼"} ${line.label}`, box.left + 4 * ratio, at);
          return;
        }
        pen.setLineDash([5 * ratio, 4 * ratio]);
        pen.beginPath(); pen.moveTo(box.left, y); pen.lineTo(box.left + box.width, y); pen.stroke();
        pen.fillText(line.label, box.left + 4 * ratio, y - 4 * ratio);
      });
      marks.forEach((mark) => {
        const x = chart.valToPos(mark.x, "x", true);
        if (x < box.left || x > box.left + box.width) return;
        stroke(mark.kind);
        pen.setLineDash(mark.kind === "accepted" ? [] : [2 * ratio, 3 * ratio]);
        pen.beginPath(); pen.moveTo(x, box.top); pen.lineTo(x, box.top + box.height); pen.stroke();
        const room = x + 4 * ratio + pen.measureText(mark.label).width < box.left + box.width;
        pen.textAlign = room ? "left" : "right";
        pen.fillText(mark.label, x + (room ? 4 : -4) * ratio, box.top + 12 * ratio);
      });
      pen.restore();
    }

    tell(chart, label) {
      const index = chart.cursor.idx;
      if (!this.read) return;
      if (index === null || index === undefined) { this.read.textContent = this.read.dataset.still || ""; return; }
      const { x, series, marks = [] } = this.told;
      const parts = series.filter((each) => each.of == null).map((each) => {
        const span = each.low && each.low[index] !== null ? ` [${written(each.low[index])}, ${written(each.high[index])}]` : "";
        return each.values[index] === null ? "" : `${each.name} ${written(each.values[index])}${span}`;
      });
      const here = marks.filter((mark) => mark.x === x[index]).map((mark) => mark.told || mark.label);
      this.read.textContent = [label(x[index]), ...parts, ...here].filter(Boolean).join(" · ");
    }
  }

  // A chart is made when it is first seen: thousands of records stay light.
  const watcher = new IntersectionObserver((seen) => seen.forEach((each) => {
    if (!each.isIntersecting) return;
    watcher.unobserve(each.target);
    plots.push(new Plot(each.target));
  }), { rootMargin: "300px" });

  // Flames: click zooms, the box at the top goes back, the search marks.
  const room = (name, width) => {
    const fits = Math.floor((width - 6) / 6.6);
    return name.length <= fits ? name : fits > 2 ? name.slice(0, fits - 1) + "…" : "";
  };
  const zoomed = (svg, left, share) => {
    const across = svg.viewBox.baseVal.width;
    all("g.box", svg).forEach((box) => {
      const [at, wide] = JSON.parse(box.dataset.at);
      const from = Math.max((at - left) / share, 0), to = Math.min((at + wide - left) / share, 1);
      box.style.display = to - from > 0.0005 ? "" : "none";
      const rect = box.querySelector("rect"), text = box.querySelector("text"), width = (to - from) * across;
      rect.setAttribute("x", from * across);
      rect.setAttribute("width", Math.max(width - 0.5, 0.3));
      text.setAttribute("x", from * across + 4);
      text.textContent = room(text.dataset.text, width);
    });
  };
  const lightFlames = (within) => all("svg.flames", within).forEach((svg) => {
    all("g.box", svg).forEach((box) => {
      box.style.cursor = "pointer";
      box.addEventListener("click", () => zoomed(svg, ...JSON.parse(box.dataset.at)));
    });
    const search = svg.parentElement.parentElement.querySelector("input.flame-search");
    if (search) search.addEventListener("input", () => {
      const word = search.value.toLowerCase();
      let found = 0;
      all("g.box", svg).forEach((box) => {
        const hit = word && box.querySelector("text").dataset.text.toLowerCase().includes(word);
        box.classList.toggle("found", Boolean(hit));
        box.classList.toggle("unfound", Boolean(word) && !hit);
        found += hit ? 1 : 0;
      });
      search.nextElementSibling.textContent = word ? `${found} found` : "";
    });
  });

  // Frames of a replay: step, play, jump.
  const players = (within) => all(".player", within).forEach((player) => {
    const frames = JSON.parse(player.dataset.frames), range = player.querySelector("input[type=range]");
    const picture = player.querySelector("img"), words = player.querySelector("pre"), told = player.querySelector("output");
    const show = () => {
      const frame = frames[Number(range.value)];
      if (picture) picture.src = frame.picture;
      if (words) words.textContent = frame.text;
      told.textContent = `step ${frame.step}${frame.note ? `: ${frame.note}` : ""}`;
    };
    const move = (by) => { range.value = Math.min(frames.length - 1, Math.max(0, Number(range.value) + by)); show(); };
    let running = null;
    const acts = {
      back: () => move(-1), forward: () => move(1),
      play: () => { running = running ? clearInterval(running) : setInterval(() => move(1), 200); },
      jump: () => { range.value = frames.findIndex((frame) => frame.note) < 0 ? 0 : frames.findIndex((frame) => frame.note); show(); },
    };
    all("button", player).forEach((button) => button.addEventListener("click", acts[button.dataset.act]));
    const jump = player.querySelector("[data-act=jump]"), marked = frames.find((frame) => frame.note);
    jump.hidden = !marked;
    if (marked) jump.textContent = `jump to ${marked.note.split(/[,:]/)[0]}`;
    range.addEventListener("input", show);
    show();
  });

  // Plots by what stands above them.
  const searched = (within) => all("input.figure-search", within).forEach((search) => {
    search.addEventListener("input", () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      all("figure", search.parentElement.nextElementSibling).forEach((figure) => {
        const text = figure.querySelector("figcaption").textContent.toLowerCase();
        figure.hidden = !words.every((word) => text.includes(word));
      });
    });
  });

  const wake = (within) => { all(".plot", within).forEach((place) => watcher.observe(place)); lightFlames(within); players(within); searched(within); };

  // Tabs are addresses: a link to one can be kept.
  const tabs = all("nav a");
  const awake = new Set();
  const open = () => {
    const [wanted, place] = location.hash.slice(1).split("/");
    const name = tabs.some((tab) => tab.hash.slice(1) === wanted) ? wanted : tabs[0].hash.slice(1);
    tabs.forEach((tab) => tab.setAttribute("aria-selected", String(tab.hash.slice(1) === name)));
    all("main > section").forEach((section) => {
      section.classList.toggle("shown", section.id === `tab-${name}`);
      if (section.id === `tab-${name}` && !awake.has(name)) { awake.add(name); wake(section); }
    });
    const figure = place && document.getElementById(`${name}-${place}`);
    all("figure.wanted").forEach((other) => other.classList.remove("wanted"));
    if (figure) { figure.classList.add("wanted"); figure.scrollIntoView({ block: "center" }); }
  };
  addEventListener("hashchange", open);

  // A record in full, drawn when somebody asks for it.
  const dialog = document.getElementById("record");
  const openRecord = (number) => {
    const text = document.getElementById(`record-${number}`);
    if (!text) return;
    const body = dialog.querySelector("div");
    body.innerHTML = text.textContent;
    wake(body);
    dialog.showModal();
  };
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.addEventListener("click", (event) => {
    const row = event.target.closest("[data-record]");
    if (row && !event.target.closest("a")) openRecord(row.dataset.record);
  });
  document.addEventListener("keydown", (event) => {
    const row = event.key === "Enter" && event.target.closest("[data-record]");
    if (row) openRecord(row.dataset.record);
  });

  // The list of records: rows are made as somebody comes near their place.
  const STATE = 4, AT_ONCE = 100;
  const listing = document.querySelector("#records table"), search = document.getElementById("record-search");
  if (listing) {
    const rows = JSON.parse(document.getElementById("record-rows").textContent);
    const texts = rows.map(([, , cells]) => cells.join(" ").toLowerCase());
    const told = document.getElementById("record-count");
    const end = document.getElementById("records").appendChild(document.createElement("div"));
    const near = new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && more(), { rootMargin: "600px" });
    let found = [], made = 0;
    const drawn = ([number, tone, cells]) => {
      const row = document.createElement("tr");
      row.dataset.record = number;
      row.tabIndex = 0;
      cells.forEach((cell, index) => {
        const place = row.insertCell();
        place.textContent = cell;
        if (index === STATE) place.className = tone;
      });
      return row;
    };
    const more = () => {
      const next = found.slice(made, made + AT_ONCE);
      listing.tBodies[0].append(...next.map((index) => drawn(rows[index])));
      made += next.length;
      near.unobserve(end);
      if (made < found.length) near.observe(end);
    };
    const choose = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      found = rows.map((_, index) => index).filter((index) => words.every((word) => texts[index].includes(word)));
      all("tr[data-record]", listing).forEach((row) => row.remove());
      told.textContent = words.length ? `${found.length} of ${rows.length}` : `${rows.length}`;
      made = 0;
      more();
    };
    search.addEventListener("input", choose);
    choose();
  }

  setTheme(remembered || system);
  open();
  root.dataset.ready = "yes";

  // Served, the page follows what is written.
  const live = document.getElementById("live");
  if (live) {
    const heard = new EventSource(live.dataset.events);
    // Nobody's record is shut while it is read.
    heard.addEventListener("records", () => {
      if (dialog.open) dialog.addEventListener("close", () => location.reload(), { once: true });
      else location.reload();
    });
    const panels = [];
    const made = (within, tag, text = "") => {
      const element = within.appendChild(document.createElement(tag));
      element.textContent = text;
      return element;
    };
    const panel = (within, { title, ...plot }) => {
      const figure = made(within, "figure"), place = (made(figure, "figcaption", title), made(figure, "div"));
      place.className = "plot";
      place.dataset.plot = JSON.stringify(plot);
      made(figure, "div").className = "read";
      panels.push(new Plot(place));
    };
    heard.addEventListener("training", (event) => {
      panels.splice(0).forEach((each) => { each.chart.destroy(); plots.splice(plots.indexOf(each), 1); });
      live.replaceChildren();
      JSON.parse(event.data).forEach((run) => {
        made(live, "h2", run.title);
        const row = made(live, "div");
        row.className = "plots";
        run.plots.forEach((plot) => panel(row, plot));
        const tree = made(row, "figure");
        made(tree, "figcaption", run.about);
        made(tree, "pre", run.tree);
      });
      plots.push(...panels);
    });
  }
})();
