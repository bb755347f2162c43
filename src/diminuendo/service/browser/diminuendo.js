// Chooses from a public menu without a round trip. Apache-2.0.
//
//   const shop = await Diminuendo.open({menu: "/v1/placements/home/menu", decide: "/decide", answer: "/answer"});
//   const shown = await shop.choose({country: "DE"});  // {slate: [names], answer}
//   shown.answer({click: 2});                          // true once it is stored, false where it counts for nothing
//
// `decide` and `answer` are addresses of your own server, which adds its key, and `user_id` where `max_rounds_per_user` is above 1, and
// passes bodies and Idempotency-Key on to /v1/placements/home/decisions and /v1/answers. Where the menu has one slate,
// or one for each type, it is shown at once, and a token fetched while she looks; should the menu have changed, only
// what she wants counts. Else `choose` waits for the service; if that is away, it is a fallback.
"use strict";
const Diminuendo = {
  async open({menu, decide, answer, every = 30}) {
    const send = (url, body, again = 3, key = Math.random().toString(36)) =>
      fetch(url, {method: "POST", keepalive: true,
        headers: {"Content-Type": "application/json", "Idempotency-Key": key},
        body: body.padEnd(Math.ceil(body.length / 256) * 256)})
        .then(r => { if (r.status > 499) throw r; return r; })
        .catch(e => { if (!again) throw e;
          return new Promise(f => setTimeout(f, 400 * (4 - again))).then(() => send(url, body, again - 1, key)); });
    let now;
    const fetched = async () => { const r = await fetch(menu); if (r.ok) now = await r.json(); };
    await fetched();
    if (!now) throw new Error("There is no menu at " + menu);
    const timer = setInterval(() => fetched().catch(() => 0), every * 1000);
    // The number of what is known of her: the last column turns fastest, and 0 in a column is not known.
    const type = known => now.columns.reduce((sum, [name, values]) => {
      const at = values.indexOf(String(known[name])), other = values.indexOf("other");
      return sum * (values.length + 1) + (known[name] == null ? 0 : (at < 0 ? other : at) + 1);
    }, 0);
    return {
      close: () => clearInterval(timer),
      async choose(known = {}, exclude) {
        const {kind, slates, fallback, items} = now;
        const row = exclude ? 0 : kind == "one" ? slates[0] : kind == "types" && slates[type(known)];
        const names = row => row.map(item => item < 0 ? null : items[item]);
        const got = send(decide, JSON.stringify({context: now.columns.length ? known : undefined, exclude}))
          .then(r => r.ok ? r.json() : {}).catch(() => ({}));
        const slate = row ? names(row) : (await got).slate || names(fallback).map(n => exclude?.includes(n) ? null : n);
        return {slate, answer: said => got.then(({slate: theirs, token}) =>
          !!token && (!!said.wants || JSON.stringify(theirs) == JSON.stringify(slate)) &&
          send(answer, JSON.stringify({token, ...said})).then(r => r.ok, () => false))};
      },
    };
  },
};
