//! Queries by which queues take their jobs, as libraries have them.

use pgheadroom_sql::heads::heads_of;

/// `kind table.key: order; conditions` of each.
fn shown(text: &str) -> Vec<String> {
    let found = heads_of(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    found
        .iter()
        .map(|head| {
            let order: Vec<String> = head
                .ordered
                .iter()
                .map(|one| {
                    format!(
                        "{}{}{}",
                        one.column.as_deref().unwrap_or("?"),
                        if one.descending { " desc" } else { "" },
                        if one.odd_nulls { " nulls" } else { "" },
                    )
                })
                .collect();
            let conditions: Vec<String> = head
                .conditions
                .iter()
                .map(|one| format!("{} {}", one.columns.join("+"), one.is))
                .collect();
            format!(
                "{} {}{}.{}: {}; {}{}{}",
                head.kind,
                head.schema
                    .as_ref()
                    .map(|name| format!("{name}."))
                    .unwrap_or_default(),
                head.table,
                head.key.as_deref().unwrap_or("-"),
                order.join(", "),
                conditions.join(", "),
                if head.is_limited { "" } else { " unlimited" },
                if head.is_joined { " joined" } else { "" },
            )
        })
        .collect()
}

/// As River, Oban (of Python, 0.5.0), pg-boss 12, graphile-worker (at 0744172) and Solid Queue
/// have them, shortened in what they set and return.
#[test]
fn queries_of_queues() {
    for (text, expected) in [
        (
            "WITH locked_jobs AS (SELECT * FROM river_job WHERE state = $1 AND queue = \
             $2::text AND scheduled_at <= coalesce($3::timestamptz, now()) ORDER BY priority \
             ASC, scheduled_at ASC, id ASC LIMIT $4::integer FOR UPDATE SKIP LOCKED) UPDATE \
             river_job SET state = $5, attempt = river_job.attempt + $6 FROM locked_jobs \
             WHERE river_job.id = locked_jobs.id RETURNING river_job.*",
            "update river_job.id: priority, scheduled_at, id; state equal, queue equal, \
             scheduled_at below",
        ),
        (
            "WITH locked_jobs AS (SELECT priority, scheduled_at, id FROM oban_jobs WHERE \
             state = $1 AND queue = $2 ORDER BY priority ASC, scheduled_at ASC, id ASC LIMIT \
             $3 FOR UPDATE SKIP LOCKED) UPDATE oban_jobs oj SET attempt = oj.attempt + $4, \
             state = $5 FROM locked_jobs WHERE oj.id = locked_jobs.id RETURNING oj.id",
            "update oban_jobs.id: priority, scheduled_at, id; state equal, queue equal",
        ),
        (
            "WITH next AS (SELECT j.id, j.singleton_key FROM pgboss.job_common j WHERE j.name \
             = $1 AND j.state < $2 AND NOT j.blocked AND j.start_after <= now() ORDER BY \
             j.priority desc, j.created_on, j.id LIMIT $3 FOR UPDATE OF j SKIP LOCKED), \
             singleton_ranking AS (SELECT id, row_number() OVER (PARTITION BY singleton_key) \
             AS singleton_rn FROM next) UPDATE pgboss.job_common j SET state = $4, started_on \
             = now() FROM singleton_ranking WHERE j.id = singleton_ranking.id AND \
             singleton_rn = $5 RETURNING j.id",
            "update pgboss.job_common.id: priority desc, created_on, id; name equal, state \
             below, blocked false, start_after below",
        ),
        (
            "with j as (select jobs.queue_name, jobs.priority, jobs.run_at, jobs.id from gw.jobs \
             where jobs.locked_at is null and run_at <= now() and attempts < max_attempts and \
             task_identifier = any($1::text[]) and (jobs.queue_name is null or exists (select $2 \
             from gw.job_queues where job_queues.queue_name = jobs.queue_name and \
             job_queues.locked_at is null for update skip locked)) order by priority asc, run_at \
             asc limit $3 for update skip locked), q as (update gw.job_queues set locked_by = \
             $4::text, locked_at = now() from j where job_queues.queue_name = j.queue_name) \
             update gw.jobs set attempts = jobs.attempts + $5, locked_by = $6::text, locked_at = \
             now() from j where jobs.id = j.id returning *",
            "update gw.jobs.id: priority, run_at; locked_at null, run_at below, \
             attempts+max_attempts other, task_identifier any, queue_name+locked_at other",
        ),
        (
            // Of select_candidates; the rows are deleted by another statement.
            "SELECT \"solid_queue_ready_executions\".\"id\", \
             \"solid_queue_ready_executions\".\"job_id\" FROM \"solid_queue_ready_executions\" \
             WHERE \"solid_queue_ready_executions\".\"queue_name\" = $1 ORDER BY \
             \"solid_queue_ready_executions\".\"priority\" ASC, \
             \"solid_queue_ready_executions\".\"job_id\" ASC LIMIT $2 FOR UPDATE SKIP LOCKED",
            "select solid_queue_ready_executions.-: priority, job_id; queue_name equal",
        ),
        (
            // good_job, RowLockable.
            "UPDATE \"good_jobs\" SET \"locked_at\" = $1, \"locked_by_id\" = $2 WHERE \
             \"good_jobs\".\"id\" IN (SELECT \"good_jobs\".\"id\" FROM \"good_jobs\" WHERE \
             \"good_jobs\".\"finished_at\" IS NULL ORDER BY \"good_jobs\".\"priority\" ASC NULLS \
             LAST, \"good_jobs\".\"created_at\" ASC LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED) \
             RETURNING *",
            "update good_jobs.id: priority, created_at; finished_at null",
        ),
    ] {
        assert_eq!(shown(text), [expected], "{text}");
    }
}

#[test]
fn a_head_is_found_however_its_query_stands() {
    let query = "SELECT id FROM jobs WHERE state = $1 ORDER BY due, id LIMIT $2 FOR UPDATE \
                 SKIP LOCKED";
    let expected = |kind| vec![format!("{kind} jobs.id: due, id; state equal")];
    for text in [
        format!("DELETE FROM jobs WHERE id = ({query}) RETURNING *"),
        format!("DELETE FROM jobs WHERE id IN ({query})"),
        format!("DELETE FROM jobs WHERE id = ANY (ARRAY({query}))"),
        format!("DELETE FROM jobs WHERE id = ANY (ARRAY({query})::int8[])"),
        format!("DELETE FROM jobs WHERE id = ANY ({query})"),
        format!("DELETE FROM jobs AS j WHERE j.state = $3 AND j.id = ({query})"),
        format!("DELETE FROM jobs USING ({query}) AS q WHERE q.id = jobs.id"),
        format!("WITH q AS ({query}) DELETE FROM jobs USING q WHERE jobs.id = q.id"),
        format!("WITH q AS ({query}) DELETE FROM jobs WHERE id IN (SELECT id FROM q)"),
        format!(
            "WITH q AS ({query}), d AS (DELETE FROM jobs USING q WHERE jobs.id = q.id \
                 RETURNING jobs.*) INSERT INTO done SELECT * FROM d"
        ),
    ] {
        assert_eq!(shown(&text), expected("delete"), "{text}");
    }
    assert_eq!(
        shown(&format!("UPDATE jobs SET state = $3 WHERE id = ({query})")),
        expected("update")
    );
    assert_eq!(
        shown(&query.replace("id FROM", "* FROM")),
        ["select jobs.-: due, id; state equal"]
    );
}

#[test]
fn orders_and_conditions() {
    assert_eq!(
        shown(
            "SELECT * FROM s.j AS q WHERE q.a IN ($1) AND (b AND NOT c) AND d IS NULL AND e IS \
             NOT NULL AND f <= now() AND $2 < g AND (h IS NULL OR h <= $3) AND i = j AND k = \
             ANY ($4) ORDER BY q.a DESC, b NULLS FIRST, c DESC NULLS LAST, d + $5, e USING < \
             FOR NO KEY UPDATE SKIP LOCKED"
        ),
        [
            "select s.j.-: a desc, b nulls, c desc nulls, ?, ?; a any, b true, c false, \
             d null, e not null, f below, g above, h other, i+j other, k any unlimited"
        ]
    );
}

#[test]
fn what_is_no_head() {
    for text in [
        "DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE)",
        "DELETE FROM done WHERE id = (SELECT id FROM jobs FOR UPDATE SKIP LOCKED LIMIT 1)",
        "SELECT * FROM jobs FOR UPDATE NOWAIT",
        "INSERT INTO done SELECT 1",
        "WITH q AS (SELECT 1 AS id) UPDATE jobs SET a = 1 FROM q WHERE jobs.id = q.id",
    ] {
        assert_eq!(shown(text), Vec::<String>::new(), "{text}");
    }
}
