"""The functions of the PostgreSQL store and the views on it, as its first version has them; later steps change some."""

from __future__ import annotations

FUNCTIONS = """
-- `writing`, `settle`, `beat`, `lease` and the views are made again by a later step.
CREATE FUNCTION diminuendo.wall() RETURNS double precision LANGUAGE sql VOLATILE
SET search_path = diminuendo, pg_temp AS $$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;

CREATE FUNCTION diminuendo.instant() RETURNS double precision LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT greatest(clock.at, (SELECT max(counters.at) FROM counters), wall() + clock.ahead) FROM clock
$$;

-- To be called first by whoever writes: what it writes is synced when it has committed, and has a time that is not
-- before what `settle` has waited for. Nobody is waited for longer than some seconds.
CREATE FUNCTION diminuendo.writing() RETURNS void LANGUAGE plpgsql SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM set_config('synchronous_commit', 'on', true), set_config('lock_timeout', '5s', true);
    PERFORM pg_advisory_xact_lock_shared(1684630889, 1);
END $$;

-- Until everybody who writes now has committed; nobody writes meanwhile, which is a moment.
CREATE FUNCTION diminuendo.settle() RETURNS void LANGUAGE plpgsql SET search_path = diminuendo, pg_temp AS $$ BEGIN
    PERFORM set_config('lock_timeout', '5s', true);
    PERFORM pg_advisory_xact_lock(1684630889, 1);
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

CREATE FUNCTION diminuendo.beat(who text, said text) RETURNS double precision LANGUAGE plpgsql
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
DECLARE
    found double precision;
BEGIN
    PERFORM writing();
    found := tick();
    INSERT INTO beats VALUES (who, found, said) ON CONFLICT (name) DO UPDATE SET at = found, note = said;
    RETURN found;
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

-- OFFSET 0: how much is shown is asked once, and not for every row.
CREATE VIEW diminuendo.shown_menus AS
    SELECT placement, version, first, effective_at, body FROM diminuendo.menus
    WHERE effective_at <= (SELECT diminuendo.instant());
CREATE VIEW diminuendo.shown_leases AS
    SELECT leases.* FROM diminuendo.placements,
    LATERAL (SELECT diminuendo.forgets(number) AS forgets OFFSET 0) AS by_now,
    diminuendo.leases WHERE placement = number AND past > by_now.forgets;
CREATE VIEW diminuendo.shown_ledger AS
    SELECT population, seq, line FROM diminuendo.populations,
    LATERAL (SELECT diminuendo.shown(name) AS lines OFFSET 0) AS by_now,
    diminuendo.ledger WHERE population = name AND seq < by_now.lines;
CREATE VIEW diminuendo.shown_releases AS
    SELECT population, releases.name, body FROM diminuendo.populations,
    LATERAL (SELECT diminuendo.shown(populations.name) AS lines OFFSET 0) AS by_now,
    diminuendo.releases WHERE population = populations.name AND line < by_now.lines;

CREATE FUNCTION diminuendo.lease(which bigint, many bigint, seconds double precision, reported bigint, said bytea)
RETURNS TABLE (first bigint, past bigint, version bigint, at double precision, expires_at double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
#variable_conflict use_column
DECLARE
    moment double precision;
    found record;
BEGIN
    PERFORM check_placement(which);
    IF reported IS NULL AND (many = 0 OR NOT EXISTS (SELECT FROM rounds_left(which, instant()))) THEN
        RETURN;  -- nothing to write
    END IF;
    PERFORM writing();
    PERFORM FROM counters WHERE placement = which FOR NO KEY UPDATE;
    moment := instant();
    IF moment > wall() + (SELECT ahead FROM clock) + 0.001 THEN
        moment := tick();  -- the database's clock was set back
    END IF;
    UPDATE leases SET report = said, reported_at = moment
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

CREATE FUNCTION diminuendo.rounds_of(which bigint, whom bytea) RETURNS SETOF bigint LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = diminuendo, pg_temp AS $$
    SELECT DISTINCT unnest(rounds || last) AS round FROM visits WHERE placement = which AND person = whom ORDER BY 1
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA diminuendo FROM PUBLIC;
"""
