"use strict";

/* Draws the samples of a report from the data beside it. Texts of the data become text nodes, never markup. */
(() => {
  const PAGE = 50;
  const data = JSON.parse(document.getElementById("data").textContent);
  const several = data.runs.length > 1;

  /* ---- elements ---- */

  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (typeof value === "function") made.addEventListener(name, value);
      else if (value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  const textBlock = (text, kind) => make("div", { class: `text ${kind || ""}`.trim(), dir: "auto" }, text);
  const figure = (value) => (value === null ? "undefined" : value.toFixed(3));
  const grouped = (count) => count.toLocaleString("en");

  /* ---- verdicts: a mark, a word and a colour, so that none of them stands alone ---- */

  const MARKS = { true: ["yes", "✓", "attributed"], false: ["no", "✗", "not attributed"], null: ["none", "–", "no verdict"] };

  function ruling(attributed) {
    return MARKS[String(attributed)];
  }

  function chip(who, attributed, probability, extra) {
    const [kind, mark, word] = ruling(attributed);
    return make(
      "span", { class: `chip ${kind}` },
      who === null ? null : make("span", { class: "who", dir: "auto" }, who),
      make("span", { class: "mark", "aria-hidden": "true" }, mark),
      make("span", {}, word),
      probability === null || probability === undefined
        ? null
        : make("span", { class: "probability", title: "probability of being attributed" }, probability.toFixed(2)),
      extra ? make("span", { class: "extra" }, extra) : null,
    );
  }

  function labelChip(label) {
    if (label === null) return null;
    const votes = label.votes.filter((vote) => vote !== null);
    const counted = votes.length > 1 ? `${votes.filter(Boolean).length} of ${votes.length} say yes` : "";
    return chip(data.labels, label.attributed, null, [counted, label.partial ? "supported in part" : ""].filter(Boolean).join(", "));
  }

  const firstVerdict = (statement) => statement.verdicts.find((verdict) => verdict !== null) || null;

  function strip(sample) {
    const shown = sample.statements.slice(0, 24);
    const marks = shown.map((statement) => {
      const verdict = firstVerdict(statement);
      const [kind, mark] = ruling(verdict === null ? null : verdict[0]);
      return make("span", { class: `mark ${kind}${statement.gap > 0 ? " differs" : ""}` }, mark);
    });
    const more = sample.statements.length + sample.more_statements - shown.length;
    return make("span", { class: "strip", "aria-hidden": "true" }, ...marks, more > 0 ? `+${more}` : null);
  }

  /* ---- one sample ---- */

  function outcome(record) {
    if (record === null) return ["none", "not in this run"];
    if (record.status === "failed") return ["failed", `failed: ${record.error ? record.error[0] : "unknown"}`];
    if (record.status === "undefined") return ["none", "undefined"];
    return [record.score >= 1 ? "full" : record.score > 0 ? "part" : "zero", figure(record.score)];
  }

  function counted(sample) {
    const first = sample.statements.map(firstVerdict);
    if (!first.length) return "";
    const attributed = first.filter((verdict) => verdict && verdict[0]).length;
    return `${attributed} of ${sample.statements.length + sample.more_statements} statements attributed`;
  }

  function row(sample) {
    const panel = `panel-${sample.number}`;
    const scores = sample.runs.map((record, at) => {
      const [kind, told] = outcome(record);
      return make("span", { class: `score ${kind}` },
        make("span", { class: several ? "who" : "unseen", dir: "auto" }, several ? data.runs[at] : data.graded[at] ? "grade " : "recall "),
        make("span", { class: "told" }, told));
    });
    const about = sample.texts && sample.texts.question ? sample.texts.question : sample.statements.length ? sample.statements[0].text : "";
    const marks = marksOf(sample).length;
    const button = make(
      "button", { type: "button", "aria-expanded": "false", "aria-controls": panel, click: () => toggle(item) },
      make("span", { class: "scores" }, ...scores),
      make("span", { class: "name" },
        make("span", { class: "id", dir: "auto" }, sample.id),
        make("span", { class: "about", dir: "auto" }, about)),
      marks ? make("span", { class: "aimed", title: "holds text that looks as if it were aimed at the judge" }, "marked") : null,
      strip(sample),
      make("span", { class: "unseen" }, counted(sample) + (sample.gap > 0 ? ", judges differ" : "")),
    );
    const item = make("li", { class: "sample", id: `sample-${sample.number}` },
      make("h3", {}, button), make("div", { id: panel, class: "panel-body", hidden: "" }));
    item.sample = sample;
    return item;
  }

  /* What was marked in a sample: all runs read the same texts, so the first record that has marks has them all. */
  const marksOf = (sample) => (sample.runs.find((record) => record && record.marks.length) || { marks: [] }).marks;

  function marked(sample) {
    const marks = marksOf(sample);
    if (!marks.length) return [];
    const items = marks.map(([kind, place, excerpt]) => make("li", { dir: "auto" }, `${kind} in ${place}: `, make("q", {}, excerpt)));
    return [make("h4", {}, "Looks as if it were aimed at the judge"), make("ul", { class: "marks" }, ...items)];
  }

  const isOpen = (item) => item.querySelector("h3 button").getAttribute("aria-expanded") === "true";

  function toggle(item, open = !isOpen(item)) {
    const body = item.querySelector(".panel-body");
    if (open && !body.hasChildNodes()) body.append(...detail(item.sample));
    item.querySelector("h3 button").setAttribute("aria-expanded", String(open));
    body.hidden = !open;
  }

  function detail(sample) {
    const texts = sample.texts;
    const errors = sample.runs.flatMap((record, at) =>
      record && record.error ? [make("p", { class: "note", dir: "auto" }, `${several ? `${data.runs[at]}: ` : ""}${record.error[1]}`)] : []);
    const empty = sample.runs.some((record) => record && record.empty)
      ? [make("p", { class: "note" }, "No context was retrieved: recall 0, and no judge was asked.")] : [];
    const reasons = sample.runs.flatMap((record, at) =>
      record && record.reason ? [make("h4", {}, several ? `Reason of ${data.runs[at]}` : "Reason"), textBlock(record.reason, "reason")] : []);
    const graded = !sample.statements.length && sample.runs.some((record, at) => record && data.graded[at]);
    return [
      ...errors, ...empty, ...marked(sample), ...reasons,
      ...(texts && texts.question ? [make("h4", {}, "Question"), textBlock(texts.question, "question")] : []),
      ...(texts && texts.reference ? [make("h4", {}, "Reference"), textBlock(markedReference(sample), "reference")] : []),
      ...(texts && texts.response ? [make("h4", {}, "Response"), textBlock(texts.response, "response")] : []),
      ...(graded ? [] : [make("h4", {}, "Statements"), statements(sample)]),
      texts ? make("h4", {}, "Retrieved contexts") : null, texts ? contexts(sample) : null,
      about(sample),
    ].filter((part) => part !== null);
  }

  /* The reference with each statement marked, as far as it holds them word for word. */
  function markedReference(sample) {
    const whole = sample.texts.reference;
    const parts = document.createDocumentFragment();
    let from = 0;
    sample.statements.forEach((statement, at) => {
      const start = whole.indexOf(statement.text, from);
      if (start < 0 || !statement.text) return;
      const verdict = firstVerdict(statement);
      const [kind, mark, word] = ruling(verdict === null ? null : verdict[0]);
      parts.append(whole.slice(from, start), make("mark", { class: kind }, statement.text,
        make("sup", { "aria-label": `statement ${at + 1}, ${word}` }, `${at + 1} ${mark}`)));
      from = start + statement.text.length;
    });
    parts.append(whole.slice(from));
    return parts;
  }

  function statements(sample) {
    if (!sample.statements.length) return make("p", { class: "note" }, "There is no statement to rule on.");
    const items = sample.statements.map((statement) => {
      const [kind] = ruling((firstVerdict(statement) || [null])[0]);
      const chips = statement.verdicts.map((verdict, at) =>
        verdict === null
          ? (several ? chip(data.runs[at], null, null) : null)
          : chip(several || data.labels ? data.runs[at] : null, verdict[0], verdict[1]));
      const reasons = statement.verdicts.flatMap((verdict, at) =>
        verdict && verdict[2] ? [make("blockquote", { dir: "auto" }, several ? `${data.runs[at]}: ` : "", verdict[2])] : []);
      return make("li", { class: `statement ${kind}` },
        textBlock(statement.text),
        make("p", { class: "chips" }, ...chips, labelChip(statement.label),
          statement.gap > 0 ? make("strong", { class: "differ" }, "they differ") : null),
        ...supports(sample, statement), ...reasons);
    });
    const more = sample.more_statements ? make("p", { class: "note" }, `${grouped(sample.more_statements)} more statements are not shown.`) : "";
    return make("div", {}, make("ol", { class: "statements" }, ...items), more);
  }

  const HOW = {
    alone: "supported by", together: "supported only by several contexts together, most by", unknown: "by which context is not known, most by",
  };

  /* Which contexts support a statement alone: each a link to the context, where its text is in the report. */
  function supports(sample, statement) {
    return statement.verdicts.flatMap((verdict, at) => {
      const support = verdict && verdict[3];
      if (!support) return [];
      const links = support.contexts.map(([number, probability, attributed]) => make("span", { class: "chip" },
        contextLink(sample, number),
        attributed === null ? make("span", { class: "extra" }, "question failed")
          : probability === null ? null
            : make("span", { class: "probability", title: "probability that this context alone supports it" }, probability.toFixed(2))));
      return [make("p", { class: "chips support" }, several ? make("span", { class: "who", dir: "auto" }, `${data.runs[at]}: `) : null,
        make("span", {}, HOW[support.how]), ...links)];
    });
  }

  const contextId = (sample, number) => `context-${sample.number}-${number}`;

  function contextLink(sample, number) {
    const name = `context ${number}`;
    if (!sample.texts || number > sample.texts.contexts.length) return make("span", {}, name);
    return make("a", { href: `#${contextId(sample, number)}`, click: (event) => { event.preventDefault(); showContext(sample, number); } }, name);
  }

  function showContext(sample, number) {
    const shown = document.getElementById(contextId(sample, number));
    for (const other of document.querySelectorAll(".contexts .pointed")) other.classList.remove("pointed");
    shown.open = true;
    shown.classList.add("pointed");
    shown.scrollIntoView();
    shown.querySelector("summary").focus({ preventScroll: true });
  }

  /* What a context supports, as each run has it: numbers of statements. */
  function supported(sample, number) {
    return data.runs.flatMap((run, at) => {
      const found = sample.statements.flatMap(({ verdicts }, place) => {
        const support = verdicts[at] && verdicts[at][3];
        return support && support.contexts.some(([one, , attributed]) => one === number && attributed) ? [place + 1] : [];
      });
      if (!found.length) return [];
      const what = `supports statement${found.length > 1 ? "s" : ""} ${found.join(", ")}`;
      return [make("span", { class: "supports", dir: "auto" }, several ? ` ${run}: ${what}` : ` ${what}`)];
    });
  }

  function contexts(sample) {
    const texts = sample.texts;
    if (!texts.contexts.length) return make("p", { class: "note" }, "None.");
    const total = texts.contexts.reduce((sum, [text, cut]) => sum + text.length + cut, 0);
    const parts = texts.contexts.map(([text, cut], at) => make(
      "details", { id: contextId(sample, at + 1), ...(total < 2500 ? { open: "" } : {}) },
      make("summary", {}, `Context ${at + 1}`, make("span", { class: "length" }, ` ${grouped(text.length + cut)} characters`),
        ...supported(sample, at + 1),
        make("span", { class: "start", dir: "auto" }, text.slice(0, 120))),
      textBlock(text, "context"),
      cut ? make("p", { class: "note" }, `Shortened, ${grouped(cut)} characters more.`) : null,
    ));
    const more = texts.more_contexts ? make("p", { class: "note" }, `${grouped(texts.more_contexts)} more contexts are not shown.`) : null;
    return make("div", { class: "contexts" }, ...parts, more);
  }

  const WHY = {
    worst: "one of the lowest recall", differ: "one of those that judges differ on most", drawn: "drawn at random",
    failed: "it failed", undefined: "its recall is undefined",
  };

  function about(sample) {
    const pairs = [["In this report because", WHY[sample.why]]];
    if (sample.group !== null) pairs.push(["group", sample.group]);
    for (const [name, value] of Object.entries(sample.metadata)) pairs.push([name, value]);
    return make("dl", { class: "facts" }, ...pairs.map(([name, told]) =>
      make("div", {}, make("dt", { dir: "auto" }, name), make("dd", { dir: "auto" }, told))));
  }

  /* ---- the list: filtered, sorted, a page at a time ---- */

  const missed = (sample) => sample.lowest !== null && sample.lowest < 1;
  const peopleDiffer = (sample) => sample.statements.some(({ label, verdicts }) =>
    label && label.attributed !== null && verdicts.some((verdict) => verdict && verdict[0] !== null && verdict[0] !== label.attributed));
  const judgesDiffer = (sample) => sample.statements.some(({ verdicts }) => {
    const ruled = verdicts.filter((verdict) => verdict && verdict[0] !== null);
    return ruled.some((verdict) => verdict[0] !== ruled[0][0]);
  });

  const FILTERS = [
    ["all", "All", () => true],
    ["missed", "With a missed statement", missed],
    ...(several ? [["differ", "Judges disagree", judgesDiffer]] : []),
    ...(data.labels ? [["people", "A judge and people disagree", peopleDiffer]] : []),
    ["failed", "Failed", (sample) => sample.runs.some((record) => record && record.status === "failed")],
    ["undefined", "Undefined", (sample) => sample.runs.some((record) => record && record.status === "undefined")],
    ["drawn", "Drawn at random", (sample) => sample.why === "drawn"],
  ].map(([name, title, holds]) => ({ name, title, holds, count: data.samples.filter(holds).length }))
    .filter(({ name, count }) => count || name === "all" || name === "differ");

  const byNumber = (a, b) => a.number - b.number;
  const SORTS = [
    ["lowest", "Lowest recall first", null],
    ["input", "In the order of the data", byNumber],
    ...(several || data.labels ? [["gap", "Disagreements first", (a, b) => b.gap - a.gap || byNumber(a, b)]] : []),
  ];

  function searchable(sample) {
    const texts = sample.texts;
    return [sample.id, texts ? texts.question : "", texts ? texts.reference : "", ...sample.statements.map((statement) => statement.text)]
      .join("\n").toLowerCase();
  }

  const browser = document.getElementById("browser");
  const list = make("ol", { class: "samples", id: "sample-list" });
  const status = make("p", { class: "status", role: "status" });
  const more = make("button", { type: "button", class: "more", click: () => showMore() }, "Show more");
  const search = make("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", input: () => refresh() });
  const filter = make("select", { id: "filter", change: () => refresh() },
    ...FILTERS.map(({ name, title, count }) => make("option", { value: name }, `${title} (${grouped(count)})`)));
  const sort = make("select", { id: "sort", change: () => refresh() },
    ...SORTS.map(([name, title]) => make("option", { value: name }, title)));
  const openAll = make("button", { type: "button", id: "open-all", click: () => toggleAll() }, "Open all shown");
  let found = [];

  function refresh() {
    const words = search.value.toLowerCase().trim();
    const { holds } = FILTERS.find(({ name }) => name === filter.value);
    const order = SORTS.find(([name]) => name === sort.value)[2];
    found = data.samples.filter((sample) => holds(sample) && (!words || searchable(sample).includes(words)));
    if (order) found.sort(order);
    list.replaceChildren();
    showMore();
  }

  function showMore(upTo = list.childElementCount + PAGE) {
    const first = list.childElementCount;
    list.append(...found.slice(first, upTo).map(row));
    const left = found.length - list.childElementCount;
    more.hidden = left <= 0;
    more.textContent = `Show ${grouped(Math.min(PAGE, left))} more`;
    status.textContent = found.length
      ? `${grouped(list.childElementCount)} of ${grouped(found.length)} samples shown` : "No sample matches.";
    if (first && list.children[first]) list.children[first].querySelector("button").focus();
  }

  function toggleAll() {
    const open = [...list.children].some((item) => !isOpen(item));
    for (const item of list.children) toggle(item, open);
    openAll.textContent = open ? "Close all" : "Open all shown";
  }

  /* A link to #sample-N opens it, whatever the filter hides. */
  function follow() {
    const wanted = /^#sample-(\d+)$/.exec(location.hash);
    if (!wanted) return;
    const number = Number(wanted[1]);
    if (!found.some((sample) => sample.number === number)) {
      search.value = "";
      filter.value = "all";
      refresh();
    }
    const at = found.findIndex((sample) => sample.number === number);
    if (at < 0) return;
    if (at >= list.childElementCount) showMore(at + 1);
    const item = list.children[at];
    toggle(item, true);
    item.scrollIntoView();
    item.querySelector("button").focus({ preventScroll: true });
  }

  if (browser) {
    browser.append(
      make("form", { class: "toolbar", role: "search", "aria-label": "Samples", submit: (event) => event.preventDefault() },
        make("label", {}, make("span", {}, "Search"), search),
        make("label", {}, make("span", {}, "Show"), filter),
        make("label", {}, make("span", {}, "Sort"), sort), openAll),
      status, list, more);
    refresh();
    follow();
    addEventListener("hashchange", follow);
  }

  /* ---- print: what is folded is opened, and closed again ---- */

  let opened = [];
  addEventListener("beforeprint", () => {
    const items = [...list.children].filter((item) => !isOpen(item));
    for (const item of items) toggle(item, true);
    const details = [...document.querySelectorAll("details:not([open])")];
    for (const one of details) one.open = true;
    opened = [() => items.forEach((item) => toggle(item, false)), () => details.forEach((one) => { one.open = false; })];
  });
  addEventListener("afterprint", () => { opened.forEach((close) => close()); opened = []; });

  /* ---- light and dark: the system's choice, until the reader chooses ---- */

  const theme = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";

  function nameTheme() {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  }

  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();
  theme.hidden = false;
})();
