"""The functions of the PostgreSQL store; and what leads from each version to the next."""

from __future__ import annotations

from diminuendo.service.store import DAY, STORED_WITHIN
from diminuendo.service.store.given import LONGEST_LEASE
from diminuendo.service.store.postgres.schema import FRONT_ENDS, TABLES

FUNCTIONS = f"""
CREATE FUNCTION diminuendo.wall() RETURNS double precision LANGUAGE sql VOLATILE
SET search_path = diminuendo, pg_temp AS $$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;

CREATE FUNCTION diminuendo.instant() RETURNS double precision LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT greatest(clock.at, (SELECT max(counters.at) FROM counters), wall() + clock.ahead) FROM clock
$$;

-- To be called first by whoever writes: what it writes is synced when it has committed, and has a time that is not
-- before what `settle` has waited for. Nobody is waited for longer than some seconds.
CREATE FUNCTION diminuendo.writing() RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM set_config('synchronous_commit', 'on', true), set_config('lock_timeout', '5s', true);
    LOCK TABLE turns IN ROW EXCLUSIVE MODE;
END $$;

-- Until everybody who writes now has committed; nobody writes meanwhile, which is a moment.
CREATE FUNCTION diminuendo.settle() RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM set_config('lock_timeout', '5s', true);
    LOCK TABLE turns IN SHARE MODE;
END $$;

-- The time of something public: the clock goes on from it.
CREATE FUNCTION diminuendo.tick() RETURNS double precision LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
DECLARE
    found double precision := instant();
    behind double precision := found - wall();
BEGIN
    UPDATE clock SET at = greatest(clock.at, found),
        ahead = CASE WHEN behind > clock.ahead + 0.001 THEN behind ELSE clock.ahead END
        RETURNING clock.at INTO found;
    RETURN found;
END $$;

-- Who has no trainer's rights is a front end, also to a trainer, and says no more than which menus it has seen.
CREATE FUNCTION diminuendo.beat(who text, said text) RETURNS double precision LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
DECLARE
    found double precision;
BEGIN
    IF NOT has_table_privilege(session_user, 'diminuendo.beats', 'INSERT') AND NOT (starts_with(who, '{FRONT_ENDS}')
        AND octet_length(who) <= 200 AND octet_length(said) <= 4096 + 256 * (SELECT count(*) FROM placements))
    THEN
        RAISE EXCEPTION 'Only a trainer says that.' USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM writing();
    found := tick();
    INSERT INTO beats VALUES (who, found, said) ON CONFLICT (name) DO UPDATE SET at = found, note = said;
    RETURN found;
END $$;

-- Whether it is new.
CREATE FUNCTION diminuendo.add_population(called text, said bytea) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM writing();
    PERFORM tick();  -- one at a time
    INSERT INTO populations (name, facts) VALUES (called, said) ON CONFLICT DO NOTHING;
    RETURN found;
END $$;

-- Its number; nothing where there is one of that name.
CREATE FUNCTION diminuendo.add_placement(called text, whose text, said bytea) RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
DECLARE
    moment double precision;
    made bigint;
BEGIN
    PERFORM writing();
    moment := tick();  -- one at a time
    IF NOT EXISTS (SELECT FROM placements WHERE name = called) THEN
        INSERT INTO placements (name, population, facts, made_at) VALUES (called, whose, said, moment)
            RETURNING number INTO made;
        INSERT INTO counters (placement) VALUES (made);
    END IF;
    RETURN made;
END $$;

-- Of the first request of that key of this day.
CREATE FUNCTION diminuendo.remember_request(called text, its_digest bytea, its_reply bytea)
RETURNS TABLE (digest bytea, reply bytea) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
#variable_conflict use_column
DECLARE
    moment double precision;
BEGIN
    PERFORM writing();
    moment := tick();
    DELETE FROM requests WHERE at < moment - {DAY};
    INSERT INTO requests VALUES (called, its_digest, its_reply, moment) ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT digest, reply FROM requests WHERE key = called;
END $$;

CREATE FUNCTION diminuendo.end_request(called text, its_reply bytea) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM writing();
    UPDATE requests SET reply = its_reply WHERE key = called;
END $$;

CREATE FUNCTION diminuendo.check_placement(which bigint) RETURNS void LANGUAGE plpgsql
SET search_path = diminuendo, pg_temp AS $$ BEGIN
    IF NOT EXISTS (SELECT FROM counters WHERE placement = which) THEN
        RAISE EXCEPTION 'There is no placement of that number.' USING ERRCODE = 'DM001';
    END IF;
END $$;

-- The version of the menu in effect, its next round, and the one before which it ends; nothing where no round is left.
CREATE FUNCTION diminuendo.rounds_left(which bigint, moment double precision)
RETURNS TABLE (version bigint, first bigint, past bigint) LANGUAGE sql STABLE
SET search_path = diminuendo, pg_temp AS $$
    SELECT version, begins, past FROM (
        SELECT menus.version, greatest(menus.first, counters.next) AS begins, counters.stopped,
            greatest(menus.past, (SELECT max(allowed.past) FROM allowed WHERE allowed.placement = which
                AND allowed.version = menus.version AND allowed.effective_at <= moment)) AS past
        FROM menus JOIN counters USING (placement)
        WHERE placement = which AND effective_at <= moment ORDER BY version DESC LIMIT 1
    ) AS latest WHERE version > stopped AND begins < past
$$;

-- What an operator does; no further round is handed out by any menu so far.
CREATE FUNCTION diminuendo.add_event(which bigint, what text, said bytea, who text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
DECLARE
    found bigint;
BEGIN
    PERFORM check_placement(which);
    PERFORM writing();
    UPDATE counters SET stopped = coalesce((SELECT max(version) FROM menus WHERE placement = which), 0)
        WHERE placement = which;  -- one at a time: none is seen before an earlier one
    INSERT INTO events (placement, at, kind, body, by) VALUES (which, tick(), what, said, who) RETURNING seq INTO found;
    RETURN found;
END $$;

-- How many lines of a ledger are shown by now.
CREATE FUNCTION diminuendo.shown(whose text) RETURNS bigint LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    WITH moment AS (SELECT instant() AS now)
    SELECT greatest(0,
        (SELECT max(lines) FROM menus JOIN placements ON number = placement, moment
            WHERE population = whose AND effective_at <= now),
        (SELECT max(seq) + 1 FROM ledger, moment WHERE population = whose AND at < 86400 * (floor(now / 86400) - 1)))
$$;

-- The round before which leases are forgotten by now.
CREATE FUNCTION diminuendo.forgets(which bigint) RETURNS bigint LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT coalesce(max(forgets), -1) FROM menus, (SELECT instant() AS now) AS moment
        WHERE placement = which AND effective_at <= now
$$;

-- What a front end says of a lease of that many rounds, made again of nothing but numbers, so that it can be read.
CREATE FUNCTION diminuendo.checked_report(first bigint, many bigint, said bytea) RETURNS bytea LANGUAGE plpgsql
SET search_path = diminuendo, pg_temp AS $$
DECLARE
    told record;
    short boolean := octet_length(said) <= 256 + 64 * many;
BEGIN
    SELECT used, ARRAY(SELECT each FROM unnest(silent) AS each WHERE each BETWEEN first AND first + many - 1) AS silent,
        ARRAY(SELECT coalesce(each, 0) FROM unnest(types) AS each LIMIT many) AS types
        INTO told FROM jsonb_to_record(CASE WHEN short THEN convert_from(said, 'UTF8')::jsonb END)
        AS report (used bigint, silent bigint[], types bigint[]);
    IF told.used IS NULL THEN
        RAISE EXCEPTION 'That is no report of this lease.' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN convert_to(json_build_object('first', first, 'used', least(greatest(told.used, 0), many),
        'silent', told.silent, 'types', told.types)::text, 'UTF8');
END $$;

CREATE FUNCTION
    diminuendo.lease(which bigint, many bigint, seconds double precision, reported bigint, said bytea)
RETURNS TABLE (first bigint, past bigint, version bigint, at double precision, expires_at double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
#variable_conflict use_column
DECLARE
    moment double precision;
    found record;
BEGIN
    PERFORM check_placement(which);
    IF (seconds > 0 AND seconds <= {LONGEST_LEASE}) IS NOT TRUE THEN
        RAISE EXCEPTION 'That is no time to lease rounds for.' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF reported IS NULL AND (many = 0 OR NOT EXISTS (SELECT FROM rounds_left(which, instant()))) THEN
        RETURN;  -- nothing to write
    END IF;
    PERFORM writing();
    PERFORM FROM counters WHERE placement = which FOR NO KEY UPDATE;
    moment := instant();
    IF moment > wall() + (SELECT ahead FROM clock) + 0.001 THEN
        moment := tick();  -- the database's clock was set back
    END IF;
    UPDATE leases SET report = checked_report(first, past - first, said), reported_at = moment
        WHERE placement = which AND first = reported AND report IS NULL;
    SELECT * INTO found FROM rounds_left(which, moment) WHERE many > 0;
    IF found.version IS NOT NULL THEN
        RETURN QUERY INSERT INTO leases (placement, first, past, version, at, expires_at)
            VALUES (which, found.first, least(found.first + many, found.past), found.version, moment, moment + seconds)
            RETURNING first, past, version, at, expires_at;
        UPDATE counters SET next = least(found.first + many, found.past) WHERE placement = which;
    END IF;
    UPDATE counters SET at = moment WHERE placement = which;
END $$;

-- All rounds in the order of their numbers and all users in the order of theirs: two who write at once wait for each
-- other, and never both. What changes nothing is written to the log as well, and takes as long. An answer has the time
-- of its arrival, unless that is to come or too long ago.
CREATE FUNCTION diminuendo.put(
    places bigint[], numbers bigint[], boxes bytea[], arrived double precision[],
    at_places bigint[], users bytea[], most bigint[], visited bigint[], names bytea[]
) RETURNS TABLE (visit bigint, counts boolean, counted bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
#variable_conflict use_column
DECLARE
    moment double precision;
    each record;
    hers record;
    before bigint;
BEGIN
    PERFORM writing();
    PERFORM pg_logical_emit_message(true, 'diminuendo', '');
    moment := instant();
    INSERT INTO answers (placement, round, at, sealed)
        SELECT told.placement, told.round,
            CASE WHEN told.at BETWEEN moment - {STORED_WITHIN} AND moment THEN told.at ELSE moment END, told.sealed
        FROM unnest(places, numbers, boxes, arrived) WITH ORDINALITY AS told (placement, round, sealed, at, nth)
        JOIN counters USING (placement) WHERE told.round >= counters.forgotten
        ORDER BY told.placement, told.round, told.nth
        ON CONFLICT DO NOTHING;
    FOR each IN
        SELECT told.* FROM unnest(at_places, users, most, visited, names) WITH ORDINALITY
            AS told (placement, user_id, max_rounds_per_user, round, key, nth)
        JOIN counters USING (placement) ORDER BY told.placement, told.user_id, told.nth
    LOOP
        INSERT INTO visits VALUES (each.placement, each.user_id, '{{}}', -1, '') ON CONFLICT DO NOTHING;
        SELECT * INTO hers FROM visits WHERE placement = each.placement AND user_id = each.user_id FOR UPDATE;
        before := CASE WHEN each.key <> '' AND each.key = hers.key THEN hers.last ELSE each.round END;
        visit := each.nth;
        counted := before;
        IF before = ANY (hers.rounds) OR before = hers.last THEN
            counts := before = ANY (hers.rounds);
        ELSE
            counts := cardinality(hers.rounds) < each.max_rounds_per_user;
            UPDATE visits SET last = each.round, key = each.key,
                rounds = CASE WHEN counts THEN hers.rounds || each.round ELSE hers.rounds END
                WHERE placement = each.placement AND user_id = each.user_id;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

CREATE FUNCTION diminuendo.erase(which bigint, numbers bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
DECLARE
    moment double precision;
BEGIN
    PERFORM check_placement(which);
    PERFORM writing();
    PERFORM pg_logical_emit_message(true, 'diminuendo', '');
    moment := instant();
    INSERT INTO answers (placement, round, at, sealed)
        SELECT DISTINCT which, told.round, moment, NULL::bytea FROM unnest(numbers) AS told (round) ORDER BY 2
        ON CONFLICT (placement, round) DO UPDATE SET sealed = NULL, at = excluded.at
        WHERE answers.sealed IS NOT NULL;
END $$;

-- The rounds of somebody who has a name, those that count and her last one; which they are is told to nobody.
CREATE FUNCTION diminuendo.erase_user(which bigint, whom bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM erase(which, ARRAY(SELECT unnest(rounds || last) FROM visits WHERE placement = which AND user_id = whom));
END $$;

CREATE FUNCTION diminuendo.leases_shown(which bigint, since bigint)
RETURNS TABLE (first bigint, past bigint, version bigint, at double precision, expires_at double precision,
    report bytea, reported_at double precision) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT first, past, version, at, expires_at, report, reported_at FROM leases
        WHERE placement = which AND first >= since AND past > (SELECT forgets(which))
$$;

CREATE FUNCTION diminuendo.ledger_shown(whose text, since bigint)
RETURNS TABLE (seq bigint, line bytea) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT seq, line FROM ledger WHERE population = whose AND seq >= since AND seq < (SELECT shown(whose))
$$;

CREATE FUNCTION diminuendo.releases_shown(whose text)
RETURNS TABLE (name text, body bytea) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT name, body FROM releases WHERE population = whose AND line < (SELECT shown(whose))
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA diminuendo FROM PUBLIC;
"""

STEPS = (TABLES + FUNCTIONS,)
"""What leads from each version to the next; a store's version is the number of steps it took."""
