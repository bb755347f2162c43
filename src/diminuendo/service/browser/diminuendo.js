// Chooses from a public menu without a round trip. Apache-2.0.
//
//   const shop = await Diminuendo.open({menu: "/v1/placements/home/menu", decide: "/decide", feedback: "/feedback"});
//   const shown = await shop.choose({country: "DE"});  // {slate: [names], sendFeedback}
//   shown.sendFeedback({click: 2});                    // true once stored, false if it counts for nothing
//
// `decide` and `feedback` are addresses of your own server. It adds its key (and `user_id` where `max_rounds_per_user`
// is more than 1), and passes body and Idempotency-Key on to /v1/placements/home/decisions and /v1/feedback. A menu with
// one slate, or one per context, is shown at once, a token fetched meanwhile; if the menu has changed, only ratings
// count. Otherwise `choose` waits for the service; a fallback slate is shown if that is away.
"use strict";
const Diminuendo = {
  async open({menu, decide, feedback, every = 30}) {
    const send = (url, body, again = 3, key = Math.random().toString(36)) =>
      fetch(url, {method: "POST", keepalive: true,
        headers: {"Content-Type": "application/json", "Idempotency-Key": key},
        body: body.padEnd(Math.ceil(body.length / 256) * 256)})
        .then(r => { if (r.status > 499) throw r; return r; })
        .catch(e => { if (!again) throw e;
          return new Promise(f => setTimeout(f, 400 * (4 - again))).then(() => send(url, body, again - 1, key)); });
    let now;
    const fetchMenu = async () => { const r = await fetch(menu); if (r.ok) now = await r.json(); };
    await fetchMenu();
    if (!now) throw new Error("There is no menu at " + menu);
    const timer = setInterval(() => fetchMenu().catch(() => 0), every * 1000);
    // The context ID: one digit per feature; 0 is unknown.
    const contextId = context => now.columns.reduce((sum, [name, values]) => {
      const at = values.indexOf(String(context[name])), other = values.indexOf("other");
      return sum * (values.length + 1) + (context[name] == null ? 0 : (at < 0 ? other : at) + 1);
    }, 0);
    return {
      close: () => clearInterval(timer),
      async choose(context = {}, exclude) {
        const {kind, slates, fallback, items} = now;
        const row = exclude ? 0 : kind == "one" ? slates[0] : kind == "types" && slates[contextId(context)];
        const names = row => row.map(item => item < 0 ? null : items[item]);
        const decision = send(decide, JSON.stringify({context: now.columns.length ? context : undefined, exclude}))
          .then(r => r.ok ? r.json() : {}).catch(() => ({}));
        const slate = row ? names(row) : (await decision).slate
          || names(fallback).map(n => exclude?.includes(n) ? null : n);
        return {slate, sendFeedback: given => decision.then(({slate: theirs, token}) =>
          !!token && (!!given.ratings || JSON.stringify(theirs) == JSON.stringify(slate)) &&
          send(feedback, JSON.stringify({token, ...given})).then(r => r.ok, () => false))};
      },
    };
  },
};
