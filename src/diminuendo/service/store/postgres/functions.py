"""The functions of the PostgreSQL store; and what leads from each version to the next."""

from __future__ import annotations

from diminuendo.service.store import STORED_WITHIN
from diminuendo.service.store.postgres.schema import FRONT_ENDS, TABLES
from diminuendo.service.store.sql import LONGEST_ID_BLOCK

FUNCTIONS = f"""
CREATE FUNCTION diminuendo.wall() RETURNS double precision LANGUAGE sql VOLATILE
SET search_path = diminuendo, pg_temp AS $$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;

CREATE FUNCTION diminuendo.instant() RETURNS double precision LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT greatest(clock.at, (SELECT max(counters.at) FROM counters), wall() + clock.ahead) FROM clock
$$;

-- Every writer calls this first: what it writes is synced when it has committed, and has a time that is not before
-- what `write_barrier` has waited for. A lock is waited for some seconds at most.
CREATE FUNCTION diminuendo.join_writers() RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM set_config('synchronous_commit', 'on', true), set_config('lock_timeout', '5s', true);
    LOCK TABLE writer_lock IN ROW EXCLUSIVE MODE;
END $$;

-- Waits until all writers of this moment have committed; nothing is written meanwhile, which is short.
CREATE FUNCTION diminuendo.write_barrier() RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM set_config('lock_timeout', '5s', true);
    LOCK TABLE writer_lock IN SHARE MODE;
END $$;

-- The time of something public: the clock goes on from it.
CREATE FUNCTION diminuendo.advance_clock() RETURNS double precision LANGUAGE plpgsql
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

-- A role without a trainer's rights is a front end, and notes no more than which menus it has seen.
CREATE FUNCTION diminuendo.heartbeat(who text, said text) RETURNS double precision LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
DECLARE
    found double precision;
BEGIN
    IF NOT has_table_privilege(session_user, 'diminuendo.heartbeats', 'INSERT') AND NOT (starts_with(who,
    '{FRONT_ENDS}')
        AND octet_length(who) <= 200 AND octet_length(said) <= 4096 + 256 * (SELECT count(*) FROM placements))
    THEN
        RAISE EXCEPTION 'Only a trainer says that.' USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM join_writers();
    found := advance_clock();
    INSERT INTO heartbeats VALUES (who, found, said) ON CONFLICT (name) DO UPDATE SET at = found, note = said;
    RETURN found;
END $$;

-- Whether it is new.
CREATE FUNCTION diminuendo.add_population(called text, said bytea) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM join_writers();
    PERFORM advance_clock();  -- one at a time
    INSERT INTO populations (name, spec) VALUES (called, said) ON CONFLICT DO NOTHING;
    RETURN found;
END $$;

-- Its number; nothing where there is one of that name.
CREATE FUNCTION diminuendo.add_placement(called text, whose text, said bytea) RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
DECLARE
    moment double precision;
    made bigint;
BEGIN
    PERFORM join_writers();
    moment := advance_clock();  -- one at a time
    IF NOT EXISTS (SELECT FROM placements WHERE name = called) THEN
        INSERT INTO placements (name, population, spec, made_at) VALUES (called, whose, said, moment)
            RETURNING number INTO made;
        INSERT INTO counters (placement) VALUES (made);
    END IF;
    RETURN made;
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
    PERFORM join_writers();
    UPDATE counters SET stopped = coalesce((SELECT max(version) FROM menus WHERE placement = which), 0)
        WHERE placement = which;  -- one at a time: none is seen before an earlier one
    INSERT INTO events (placement, at, kind, body, by) VALUES (which, advance_clock(), what, said,
    who) RETURNING seq INTO found;
    RETURN found;
END $$;

-- How many entries of a ledger are visible by now.
CREATE FUNCTION diminuendo.visible_entries(whose text) RETURNS bigint LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    WITH moment AS (SELECT instant() AS now)
    SELECT greatest(0,
        (SELECT max(lines) FROM menus JOIN placements ON number = placement, moment
            WHERE population = whose AND effective_at <= now),
        (SELECT max(seq) + 1 FROM ledger, moment WHERE population = whose AND at < 86400 * (floor(now / 86400) - 1)))
$$;

-- The round before which ID blocks are forgotten by now.
CREATE FUNCTION diminuendo.gc_low_water_mark(which bigint) RETURNS bigint LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT coalesce(max(gc_low_water_mark), -1) FROM menus, (SELECT instant() AS now) AS moment
        WHERE placement = which AND effective_at <= now
$$;

-- What a front end says of an ID block of that many rounds, made again of nothing but numbers, so that it can be read.
CREATE FUNCTION diminuendo.checked_report(first bigint, many bigint, said bytea) RETURNS bytea LANGUAGE plpgsql
SET search_path = diminuendo, pg_temp AS $$
DECLARE
    given record;
    short boolean := octet_length(said) <= 256 + 64 * many;
BEGIN
    SELECT used, ARRAY(SELECT each FROM unnest(silent) AS each WHERE each BETWEEN first AND first + many - 1) AS silent,
        ARRAY(SELECT coalesce(each, 0) FROM unnest(types) AS each LIMIT many) AS types
        INTO given FROM jsonb_to_record(CASE WHEN short THEN convert_from(said, 'UTF8')::jsonb END)
        AS report (used bigint, silent bigint[], types bigint[]);
    IF given.used IS NULL THEN
        RAISE EXCEPTION 'That is no report of this ID block.' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN convert_to(json_build_object('first', first, 'used', least(greatest(given.used, 0), many),
        'silent', given.silent, 'types', given.types)::text, 'UTF8');
END $$;

CREATE FUNCTION
    diminuendo.reserve_ids(which bigint, many bigint, seconds double precision, reported bigint, said bytea)
RETURNS TABLE (first bigint, past bigint, version bigint, at double precision, expires_at double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
#variable_conflict use_column
DECLARE
    moment double precision;
    found record;
BEGIN
    PERFORM check_placement(which);
    IF (seconds > 0 AND seconds <= {LONGEST_ID_BLOCK}) IS NOT TRUE THEN
        RAISE EXCEPTION 'That is no time to ID block rounds for.' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF reported IS NULL AND (many = 0 OR NOT EXISTS (SELECT FROM rounds_left(which, instant()))) THEN
        RETURN;  -- nothing to write
    END IF;
    PERFORM join_writers();
    PERFORM FROM counters WHERE placement = which FOR NO KEY UPDATE;
    moment := instant();
    IF moment > wall() + (SELECT ahead FROM clock) + 0.001 THEN
        moment := advance_clock();  -- the database's clock was set back
    END IF;
    UPDATE id_blocks SET report = checked_report(first, past - first, said), reported_at = moment
        WHERE placement = which AND first = reported AND report IS NULL;
    SELECT * INTO found FROM rounds_left(which, moment) WHERE many > 0;
    IF found.version IS NOT NULL THEN
        RETURN QUERY INSERT INTO id_blocks (placement, first, past, version, at, expires_at)
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
    known record;
    before bigint;
BEGIN
    PERFORM join_writers();
    PERFORM pg_logical_emit_message(true, 'diminuendo', '');
    moment := instant();
    INSERT INTO answers (placement, round, at, encrypted)
        SELECT given.placement, given.round,
            CASE WHEN given.at BETWEEN moment - {STORED_WITHIN} AND moment THEN given.at ELSE moment END,
            given.encrypted
        FROM unnest(places, numbers, boxes, arrived) WITH ORDINALITY AS given (placement, round, encrypted, at, nth)
        JOIN counters USING (placement) WHERE given.round >= counters.gc_low_water_mark
        ORDER BY given.placement, given.round, given.nth
        ON CONFLICT DO NOTHING;
    FOR each IN
        SELECT given.* FROM unnest(at_places, users, most, visited, names) WITH ORDINALITY
            AS given (placement, user_id, quota, round, key, nth)
        JOIN counters USING (placement) ORDER BY given.placement, given.user_id, given.nth
    LOOP
        INSERT INTO user_rounds VALUES (each.placement, each.user_id, '{{}}', -1, '') ON CONFLICT DO NOTHING;
        SELECT * INTO known FROM user_rounds WHERE placement = each.placement AND user_id = each.user_id FOR UPDATE;
        before := CASE WHEN each.key <> '' AND each.key = known.key THEN known.last ELSE each.round END;
        visit := each.nth;
        counted := before;
        IF before = ANY (known.rounds) OR before = known.last THEN
            counts := before = ANY (known.rounds);
        ELSE
            counts := cardinality(known.rounds) < each.quota;
            UPDATE user_rounds SET last = each.round, key = each.key,
                rounds = CASE WHEN counts THEN known.rounds || each.round ELSE known.rounds END
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
    PERFORM join_writers();
    PERFORM pg_logical_emit_message(true, 'diminuendo', '');
    moment := instant();
    INSERT INTO answers (placement, round, at, encrypted)
        SELECT DISTINCT which, given.round, moment, NULL::bytea FROM unnest(numbers) AS given (round) ORDER BY 2
        ON CONFLICT (placement, round) DO UPDATE SET encrypted = NULL, at = excluded.at
        WHERE answers.encrypted IS NOT NULL;
END $$;

-- The rounds of a pseudonym, those within the quota and the last one; the caller does not learn which.
CREATE FUNCTION diminuendo.erase_user(which bigint, whom bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM erase(which,
    ARRAY(SELECT unnest(rounds || last) FROM user_rounds WHERE placement = which AND user_id = whom));
END $$;

CREATE FUNCTION diminuendo.visible_id_blocks(which bigint, since bigint)
RETURNS TABLE (first bigint, past bigint, version bigint, at double precision, expires_at double precision,
    report bytea, reported_at double precision) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT first, past, version, at, expires_at, report, reported_at FROM id_blocks
        WHERE placement = which AND first >= since AND past > (SELECT gc_low_water_mark(which))
$$;

CREATE FUNCTION diminuendo.visible_ledger(whose text, since bigint)
RETURNS TABLE (seq bigint, line bytea) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT seq, line FROM ledger WHERE population = whose AND seq >= since AND seq < (SELECT visible_entries(whose))
$$;

CREATE FUNCTION diminuendo.visible_releases(whose text)
RETURNS TABLE (name text, body bytea) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT name, body FROM releases WHERE population = whose AND line < (SELECT visible_entries(whose))
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA diminuendo FROM PUBLIC;
"""

STEPS = (TABLES + FUNCTIONS,)
"""What leads from each version to the next; a store's version is the number of steps it took."""
