// Live updates, zoom, the drawer and keys. Without this file the page has the same content, with links and a form.
"use strict";
(() => {
  const HOUR = 3600, one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
  const isList = !!one("#cronjobs"), isDetail = !!one("#detail");
  document.documentElement.classList.add("scripted");

  // Times. The server's clock counts, as of the last answer.
  let answeredAt = performance.now(), serverSeconds = 0, wallSeconds = 0, zoneName = "", isConnected = false;
  const elapsed = () => Math.floor((performance.now() - answeredAt) / 1000);
  const now = () => serverSeconds + elapsed();
  const two = (number) => String(number).padStart(2, "0");
  const parts = (value, unit, rest, restUnit) => `${value} ${unit}` + (rest ? ` ${two(rest)} ${restUnit}` : "");
  const duration = (seconds) => {
    const whole = (length) => Math.floor(seconds / length);
    if (seconds < 60) return `${seconds} s`;
    if (seconds < HOUR) return parts(whole(60), "m", seconds % 60, "s");
    if (seconds < 24 * HOUR) return parts(whole(HOUR), "h", Math.floor((seconds % HOUR) / 60), "m");
    return parts(whole(24 * HOUR), "d", Math.floor((seconds % (24 * HOUR)) / HOUR), "h");
  };
  const setText = (element, text) => { if (element && element.textContent !== text) element.textContent = text; };
  const readClock = (root) => {
    const time = one(".live time", root);
    const found = time && /(\d\d):(\d\d):(\d\d) (.*)/.exec(time.textContent);
    if (!found) return;
    answeredAt = performance.now();
    serverSeconds = Date.parse(time.dateTime) / 1000;
    wallSeconds = found[1] * HOUR + found[2] * 60 + +found[3];
    zoneName = found[4];
  };
  const tick = () => {
    if (document.hidden) return;
    for (const element of all("[data-at]")) {
      const until = element.dataset.at - now();
      setText(element, until < 0 ? `${duration(-until)} ago` : `in ${duration(until)}`);
    }
    for (const element of all("[data-since]")) setText(element, duration(Math.max(0, now() - element.dataset.since)));
    if (!isConnected || one(".live.stale")) return;
    const wall = (wallSeconds + elapsed()) % (24 * HOUR);
    setText(one(".live time"), [wall / HOUR, (wall % HOUR) / 60, wall % 60].map((part) => two(Math.floor(part))).join(":") + " " + zoneName);
  };
  const viewerTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
  const viewerFull = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
  const showViewerTime = (element) => {
    const at = new Date(element.dateTime);
    const time = viewerTime.format(at);
    element.title += `\n${viewerFull.format(at)}, your time`;
    if (element.closest(".list, .next, .figures") && !element.textContent.includes(time)) {
      element.append(make("span", { className: "viewer", textContent: ` · ${time} yours` }));
    }
  };

  // What the script adds to the server's markup, before it is shown.
  const decorate = (root) => {
    all("time[datetime]", root).forEach(showViewerTime);
    if (navigator.clipboard) {
      for (const code of all(".commands code", root)) code.after(make("button", { type: "button", textContent: "copy" }));
    }
    const live = one(".live", root);
    if (live && isConnected && !live.classList.contains("stale")) setText(one(".state", live), "live ·");
  };

  // Changes an element into a fresh one, and keeps what is equal: focus, selection and scroll positions stay.
  const keyOf = (node) => (node.nodeName === "TR" || node.nodeName === "LI") && one("a", node) && one("a", node).getAttribute("href");
  const morph = (old, fresh) => {
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    if (old.nodeName === "INPUT" && old !== document.activeElement) old.value = fresh.value;
    const keyed = new Map([...old.childNodes].map((node) => [keyOf(node), node]).filter(([key]) => key));
    let place = old.firstChild;
    for (const node of [...fresh.childNodes]) {
      const key = keyOf(node);
      let match = key ? keyed.get(key) : place;
      if (match && !key && keyOf(match)) match = null;
      if (!match || match.nodeName !== node.nodeName) {
        old.insertBefore(node, place);
        continue;
      }
      keyed.delete(key);
      if (match === place) place = place.nextSibling;
      else old.insertBefore(match, place);
      if (match.nodeType === Node.ELEMENT_NODE) morph(match, node);
      else if (match.data !== node.data) match.data = node.data;
    }
    while (place) {
      const next = place.nextSibling;
      place.remove();
      place = next;
    }
  };
  const swapParts = (root, fresh, end) => {
    const focused = document.activeElement;
    for (const part of all("[data-part]", fresh)) {
      const old = one(`[data-part="${part.dataset.part}"]`, root);
      if (old) morph(old, part);
      else if (end) end.append(part);
    }
    // Without an answer about it, the text of explain stays.
    const names = new Set(all("[data-part]", fresh).map((part) => part.dataset.part));
    for (const part of all("[data-part]", root)) {
      const isElsewhere = root === document && drawer && drawer.contains(part);
      if (!isElsewhere && !names.has(part.dataset.part) && part.dataset.part !== "explain") part.remove();
    }
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  };

  // Fetching.
  let version = document.body.dataset.version, isStale = false, nextFetchAt = 0, timer = 0;
  // Number of moves. The answer to a refresh from before a move is dropped.
  let shown = 0;
  const load = async (url) => {
    const start = performance.now();
    const response = await fetch(url, { cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    // A server that answers slowly is asked less often.
    nextFetchAt = performance.now() + Math.max(1000, 10 * (performance.now() - start));
    return { fresh, isOk: response.ok };
  };
  const show = (fresh) => {
    readClock(fresh);
    decorate(fresh);
    swapParts(document, fresh);
    version = fresh.body.dataset.version;
    counts = null;
  };
  const refresh = async () => {
    timer = 0;
    if (drag) {
      nextFetchAt = performance.now() + 500;
      return schedule();
    }
    isStale = false;
    const number = shown;
    try {
      const { fresh, isOk } = await load(listUrl() || `${location.pathname}?explain=no`);
      if (isOk && number === shown) show(fresh);
      if (drawer && drawer.open) await fillDrawer(drawerPath, "?explain=no");
    } catch {
      setConnected(false);
    }
  };
  const schedule = () => {
    isStale = true;
    if (!document.hidden && !timer) timer = setTimeout(refresh, Math.max(0, nextFetchAt - performance.now()));
  };
  const setConnected = (connected) => {
    isConnected = connected;
    const live = one(".live");
    if (!live || live.classList.contains("stale")) return;
    setText(one(".state", live), connected ? "live ·" : "not connected, as of");
  };
  const connect = () => {
    const events = new EventSource("/events");
    events.onopen = () => setConnected(true);
    events.onmessage = (event) => { if (event.data !== version) schedule(); };
    events.onerror = () => {
      setConnected(false);
      version = "";
      if (events.readyState === EventSource.CLOSED) setTimeout(connect, 10000);
    };
    addEventListener("pagehide", () => events.close());
  };
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isStale) schedule(); });

  // Moving between states of the list. While the drawer is open, the address is that of the CronJob.
  let address = location.pathname + location.search;
  const listUrl = () => isList && address;
  const navigate = async (url, { replace = false } = {}) => {
    const target = new URL(url, location.href), number = ++shown;
    try {
      const { fresh, isOk } = await load(target.pathname + target.search);
      if (number !== shown) return;
      if (!isOk) return setText(one('[data-part="count"] small'), (one(".message p", fresh) || fresh.body).textContent);
      show(fresh);
      shown += 1;
      tip.hidden = true;
      address = target.pathname + target.search;
      history[replace ? "replaceState" : "pushState"]({}, "", address);
    } catch {
      location.href = url;
    }
    const part = target.hash && one(target.hash);
    const top = part ? part.getBoundingClientRect().top : 0;
    if (top < 0 || top > innerHeight * 0.6) part.scrollIntoView();
  };
  const withSpan = (from, to, namespace) => {
    const url = new URL(address, location.href);
    const text = (seconds) => new Date(seconds * 1000).toISOString().replace(/(:00)?\.000Z/, "Z");
    url.searchParams.set("from", text(from));
    url.searchParams.set("to", text(to));
    if (namespace) url.searchParams.set("namespace", namespace);
    url.searchParams.delete("page");
    return url.pathname + url.search.replaceAll("%3A", ":");
  };

  // The drawer.
  let drawer = null, drawerPath = "";
  const fillDrawer = async (path, query = "") => {
    const { fresh, isOk } = await load(path + query);
    if (path !== drawerPath) return;
    const content = one("#detail", fresh) || one(".message", fresh);
    decorate(content);
    const old = one("#detail", drawer);
    if (old && isOk && query) swapParts(old, content, old);
    else one(".content", drawer).replaceChildren(content);
    one(".bar a", drawer).href = path;
  };
  const openDrawer = async (path, { push = true } = {}) => {
    if (!drawer) {
      drawer = make("dialog", { className: "drawer" });
      drawer.setAttribute("aria-label", "CronJob");
      const bar = make("div", { className: "bar" });
      bar.append(make("a", { textContent: "open as page" }), make("button", { type: "button", textContent: "close", className: "close" }));
      drawer.append(bar, make("div", { className: "content" }));
      drawer.addEventListener("close", () => { if (location.pathname === drawerPath) history.back(); drawerPath = ""; });
      document.body.append(drawer);
    }
    drawerPath = path;
    one(".content", drawer).replaceChildren(make("p", { className: "back dim", textContent: "…" }));
    if (push) history.pushState({}, "", path);
    if (!drawer.open) drawer.showModal();
    try {
      await fillDrawer(path);
    } catch {
      location.href = path;
    }
  };
  addEventListener("popstate", () => {
    if (!isList) return location.reload();
    if (location.pathname !== "/") return openDrawer(location.pathname, { push: false });
    const isSame = location.pathname + location.search === address;
    if (drawer && drawer.open) { drawerPath = ""; drawer.close(); }
    if (!isSame) navigate(location.href, { replace: true });
  });

  // Clicks.
  document.addEventListener("click", (event) => {
    const { target } = event;
    if (target === drawer || target.closest(".close")) return target.closest("dialog").close();
    if (target.matches(".commands button")) {
      const { textContent } = target.previousElementSibling;
      return navigator.clipboard.writeText(textContent).then(() => {
        target.textContent = "copied";
        setTimeout(() => { target.textContent = "copy"; }, 1500);
      });
    }
    const link = target.closest("a[href]");
    const isPlain = !event.defaultPrevented && event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    const href = link && link.getAttribute("href");
    if (!href || !isPlain || !isList || link.closest(".bar") || !href.startsWith("/")) return;
    event.preventDefault();
    if (href.startsWith("/cronjobs/")) return openDrawer(href);
    if (drawer && drawer.open) return location.assign(href);
    navigate(href);
  });

  // The search.
  const search = (replace) => {
    const form = one(".search"), query = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...query]) if (!value.trim()) query.delete(name);
    return navigate("/" + (query.size ? `?${query}` : ""), { replace });
  };
  let searchTimer = 0;
  document.addEventListener("submit", (event) => {
    if (!isList || !event.target.matches(".search")) return;
    event.preventDefault();
    clearTimeout(searchTimer);
    search(false);
  });
  document.addEventListener("input", (event) => {
    if (!isList || !event.target.matches(".search input")) return;
    clearTimeout(searchTimer);
    searchTimer = setTimeout(() => search(true), 250);
  });

  // The strip: a tooltip for each cell, a drag zooms, a click filters.
  let counts = null, drag = null;
  const tip = make("div", { className: "tip", hidden: true });
  document.body.append(tip);
  const place = (plot, event) => {
    const box = plot.getBoundingClientRect(), { from, to, top, pitch } = plot.dataset;
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return { at: +from + share * (to - from), share, row: Math.floor((event.clientY - box.top - top) / pitch), y: event.clientY - box.top - top };
  };
  const loadCounts = () => {
    if (!counts) counts = fetch("/strip.json" + new URL(address, location.href).search).then((response) => response.json());
    return counts;
  };
  const cellText = ({ namespace, cells }, index, from, offsets) => {
    const [runs, late, failed, lost] = cells[index];
    const word = from > now() ? "start" : "run";
    const text = [`${runs.toLocaleString("en")} ${word}${runs === 1 ? "" : "s"}`];
    for (const [number, name] of [[late, "late"], [failed, "failed"], [lost, "lost"]]) if (number) text.push(`${number.toLocaleString("en")} ${name}`);
    const [, offset, zone] = offsets.findLast(([since]) => since <= from) || offsets[0];
    const wall = new Date((from + offset) * 1000).toISOString().slice(11, 16);
    return `${namespace || "others"}, ${wall} ${zone}: ${text.join(", ")}`;
  };
  const showTip = async (plot, event) => {
    const { at, row } = place(plot, event), { clientX, clientY } = event;
    const { from, cell_seconds: length, rows, offsets } = await loadCounts();
    const index = Math.floor((at - from) / length);
    tip.hidden = !plot.matches(":hover") || !rows[row] || !rows[row].cells[index];
    if (tip.hidden) return;
    tip.textContent = cellText(rows[row], index, from + index * length, offsets);
    const left = Math.min(clientX + 12, innerWidth - tip.offsetWidth - 8);
    tip.style.transform = `translate(${left}px, ${clientY + 16}px)`;
  };
  document.addEventListener("pointerdown", (event) => {
    const plot = event.target.closest(".plot");
    if (!plot || event.button !== 0 || event.pointerType === "touch" || event.target.closest("a")) return;
    event.preventDefault();
    drag = { plot, start: place(plot, event) };
  });
  document.addEventListener("pointermove", (event) => {
    const plot = drag ? drag.plot : event.target.closest && event.target.closest(".plot");
    if (!plot) return void (tip.hidden = true);
    showTip(plot, event).catch(() => { counts = null; });
    if (!drag) return;
    const end = place(plot, event);
    if (!drag.area) {
      drag.area = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      drag.area.setAttribute("class", "selection");
      drag.area.setAttribute("y", plot.dataset.top);
      drag.area.setAttribute("height", one(".cells", plot).getAttribute("height"));
      plot.append(drag.area);
    }
    drag.area.setAttribute("x", `${100 * Math.min(drag.start.share, end.share)}%`);
    drag.area.setAttribute("width", `${100 * Math.abs(drag.start.share - end.share)}%`);
  });
  document.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const { plot, start, area } = drag, end = place(plot, event);
    drag = null;
    if (area) area.remove();
    const length = plot.dataset.to - plot.dataset.from;
    const isDrag = Math.abs(end.share - start.share) * plot.clientWidth > 5;
    const step = isDrag ? (length > 4 * HOUR ? 900 : 60) : HOUR;
    const from = Math.floor(Math.min(start.at, end.at) / step) * step;
    const to = Math.max(from + step, Math.ceil(Math.max(start.at, end.at) / step) * step);
    if (isDrag) return navigate(withSpan(from, to));
    const name = all(".names li")[start.row], link = name && one("a", name);
    if (!link || start.y < 0) return;
    const namespace = link.firstChild.data;
    navigate(length > 3 * HOUR ? withSpan(from, to, namespace) : link.getAttribute("href"));
  });
  document.addEventListener("pointercancel", () => { if (drag && drag.area) drag.area.remove(); drag = null; });

  // Keys.
  let help = null;
  const KEYS = [["/", "search"], ["j, k or arrows", "next and previous CronJob"], ["Enter", "open the CronJob"], ["n, p", "next and previous page of the list"], ["Escape", "close, or leave the search"], ["?", "these keys"]];
  const showHelp = () => {
    if (!help) {
      help = make("dialog", { className: "help" });
      const list = make("dl", {});
      for (const [keys, what] of KEYS) {
        const term = make("dt", {});
        term.append(make("kbd", { textContent: keys }));
        list.append(term, make("dd", { textContent: what }));
      }
      help.append(make("h2", { textContent: "Keys" }), list, make("button", { type: "button", className: "close", textContent: "close" }));
      document.body.append(help);
    }
    if (!help.open) help.showModal();
  };
  const step = (by) => {
    const links = all(".list th a");
    const at = links.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by;
    if (links[next]) links[next].focus();
  };
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.matches("input, textarea, select")) {
      if (key === "Escape") target.blur();
      return;
    }
    if (one("dialog[open]")) return;
    const isInList = !!target.closest(".list");
    const follow = (rel) => () => { const link = one(`.pages a[rel=${rel}]`); if (link) link.click(); };
    const actions = {
      "/": () => { const field = one("#q"); if (field) { field.focus(); field.select(); } },
      "?": showHelp, j: () => step(1), k: () => step(-1), n: follow("next"), p: follow("prev"),
      ...(isInList ? { ArrowDown: () => step(1), ArrowUp: () => step(-1) } : {}),
    };
    if (!Object.hasOwn(actions, key)) return;
    event.preventDefault();
    actions[key]();
  });

  readClock(document);
  decorate(document);
  // A strip that is wider than its panel begins with the last hours.
  const line = one("line.now"), frame = line && line.closest(".scroll");
  if (frame) frame.scrollLeft += line.getBoundingClientRect().left - frame.getBoundingClientRect().left - 0.7 * frame.clientWidth;
  setInterval(tick, 1000);
  if (isList || isDetail) connect();
})();
