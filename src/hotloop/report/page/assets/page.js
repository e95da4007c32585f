(() => {
  "use strict";
  const root = document.documentElement;
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const SERIES = ["--accent", "--change", "--accepted", "--goal", "--bar", "--ink"];

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
  const written = (value) => {
    if (value === null || value === undefined) return "";
    for (const [size, letter] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
      if (Math.abs(value) >= size) return (value / size).toPrecision(3) + letter;
    }
    return String(Number(value.toPrecision(4)));
  };

  class Plot {
    constructor(place) {
      this.place = place;
      this.told = JSON.parse(place.dataset.plot);
      this.read = place.parentElement.querySelector(".read");
      this.draw();
      new ResizeObserver(() => this.fit()).observe(place);
    }

    fit() {
      const width = this.place.clientWidth;
      if (width && this.chart && width !== this.chart.width) {
        this.chart.setSize({ width, height: this.place.clientHeight });
      }
    }

    redraw() { this.chart.destroy(); this.draw(); }

    draw() {
      const { x, labels, series, lines = [], marks = [] } = this.told;
      const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
      const data = [x], shown = [{}], bands = [];
      series.forEach((each, index) => {
        const stroke = colour(SERIES[index % SERIES.length]);
        data.push(each.values);
        shown.push({ label: each.name, stroke, width: 1.6, points: { show: x.length < 80, size: 5 } });
        if (each.low) {
          data.push(each.high, each.low);
          shown.push({ width: 0, points: { show: false } }, { width: 0, points: { show: false } });
          bands.push({ series: [data.length - 2, data.length - 1], fill: colour("--band") });
        }
      });
      const label = (value) => labels ? labels[value] ?? "" : written(value);
      const options = {
        width: this.place.clientWidth || 500, height: this.place.clientHeight || 230, series: shown, bands,
        scales: { x: { time: false }, y: { range: (_, low, high) => this.range(low, high, lines) } },
        axes: [
          { ...axis, space: labels ? 90 : 60, values: (_, splits) => splits.map((value) => label(value)), incrs: labels ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] : undefined },
          { ...axis, size: 62, values: (_, splits) => splits.map(written) },
        ],
        cursor: { y: false, drag: { x: true, y: false } },
        hooks: {
          draw: [(chart) => this.annotate(chart, lines, marks)],
          setCursor: [(chart) => this.tell(chart, label)],
        },
      };
      this.chart = new uPlot(options, data, this.place);
      this.place.dataset.drawn = "yes";
    }

    range(low, high, lines) {
      const ends = [low, high, ...lines.map((line) => line.y)].filter((value) => value !== null && isFinite(value));
      if (!ends.length) return [0, 1];
      const bottom = Math.min(...ends), top = Math.max(...ends), room = (top - bottom) * 0.08 || Math.abs(top) * 0.05 || 1;
      return [bottom - room, top + room];
    }

    annotate(chart, lines, marks) {
      const pen = chart.ctx, box = chart.bbox, ratio = devicePixelRatio;
      pen.save();
      pen.font = `${11 * ratio}px system-ui`;
      pen.lineWidth = 1.3 * ratio;
      const stroke = (kind) => { pen.strokeStyle = pen.fillStyle = colour(`--${kind}`); };
      lines.forEach((line) => {
        const y = chart.valToPos(line.y, "y", true);
        stroke(line.kind);
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
        pen.fillText(mark.label, x + 4 * ratio, box.top + 12 * ratio);
      });
      pen.restore();
    }

    tell(chart, label) {
      const index = chart.cursor.idx;
      if (!this.read) return;
      if (index === null || index === undefined) { this.read.textContent = this.read.dataset.still || ""; return; }
      const { x, series, marks = [] } = this.told;
      const parts = series.map((each) => {
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
    const search = svg.parentElement.querySelector("input.flame-search");
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
    range.addEventListener("input", show);
    show();
  });

  const wake = (within) => { all(".plot", within).forEach((place) => watcher.observe(place)); lightFlames(within); players(within); };

  // Tabs are addresses: a link to one can be kept.
  const tabs = all("nav a");
  const awake = new Set();
  const open = () => {
    const wanted = location.hash.slice(1) || tabs[0].hash.slice(1);
    const name = tabs.some((tab) => tab.hash.slice(1) === wanted) ? wanted : tabs[0].hash.slice(1);
    tabs.forEach((tab) => tab.setAttribute("aria-selected", String(tab.hash.slice(1) === name)));
    all("main > section").forEach((section) => {
      section.classList.toggle("shown", section.id === `tab-${name}`);
      if (section.id === `tab-${name}` && !awake.has(name)) { awake.add(name); wake(section); }
    });
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
  document.addEventListener("click", (event) => {
    const row = event.target.closest("[data-record]");
    if (row && !event.target.closest("a")) openRecord(row.dataset.record);
  });
  document.addEventListener("keydown", (event) => {
    const row = event.key === "Enter" && event.target.closest("[data-record]");
    if (row) openRecord(row.dataset.record);
  });

  const search = document.getElementById("record-search");
  if (search) search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    all("#records tr[data-record]").forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.classList.toggle("away", !words.every((word) => text.includes(word)));
    });
  });

  setTheme(remembered || system);
  open();
  root.dataset.ready = "yes";

  // Served, the page follows what is written.
  const live = document.getElementById("live");
  if (live) {
    const heard = new EventSource(live.dataset.events);
    heard.addEventListener("records", () => location.reload());
    heard.addEventListener("training", (event) => {
      live.replaceChildren();
      JSON.parse(event.data).forEach((run) => {
        const box = live.appendChild(document.createElement("figure"));
        box.appendChild(document.createElement("figcaption")).textContent = run.title;
        box.appendChild(document.createElement("pre")).textContent = run.tree;
        run.plots.forEach((plot) => {
          const place = box.appendChild(document.createElement("div"));
          place.className = "plot"; place.dataset.plot = JSON.stringify(plot);
          plots.push(new Plot(place));
        });
      });
    });
  }
})();
