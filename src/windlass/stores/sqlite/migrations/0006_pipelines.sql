-- An execution of a pipeline. Its main job has the same id, and holds what is true of every job: due time, lane, fence, node, crashes.
-- Whoever changes an execution locks the row of its main job in windlass_hot first, if there is one.
CREATE TABLE windlass_execution (
    id               text PRIMARY KEY,
    tenant           text NOT NULL,
    pipeline         text NOT NULL,
    pipeline_version text NOT NULL,
    definition_hash  text NOT NULL,
    key              text,              -- unique per tenant, pipeline and version until retention ends
    input_hash       text NOT NULL,     -- tells a duplicate from a conflict
    dlq              integer NOT NULL, -- 0: it fails without a dead letter
    status           text NOT NULL,     -- OPEN until it has ended: SUCCEEDED, FAILED, DLQ, CANCELED
    row_version      integer NOT NULL,  -- that of the last row in windlass_transition
    written_by       text NOT NULL,     -- fence and number of the last write by a claim: tells whether a lost answer was a commit
    cursor           integer NOT NULL, -- index of the step that runs or comes next
    attempt          integer NOT NULL, -- of that step, from 1
    value_version    integer NOT NULL,  -- the row of windlass_transition that holds the present value; 0: the arguments of the job
    stage            integer NOT NULL, -- number of the present set of items: grows with every expansion and transformation
    streams          integer NOT NULL, -- 1: the present value is the items of the stage
    filled           integer NOT NULL, -- 1: the stage is complete, and parts were made for all items of the present segment
    emitted          integer NOT NULL,  -- items that the present expansion has stored
    last_hash        text,              -- hash of the last of them: a repeated expansion must give the same
    cut              text NOT NULL, -- parts were made for items up to this path
    rejected         integer NOT NULL,
    paused           integer NOT NULL,
    failing          text,              -- the failure of one of its items, that ends it
    transition_key   text,
    error_code       text,
    error_message    text,
    source           text,              -- what it was submitted by, if not by a caller: a re-driven reject
    created_at       integer NOT NULL,
    updated_at       integer NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX windlass_execution_key ON windlass_execution (tenant, pipeline, pipeline_version, key) WHERE key IS NOT NULL;
CREATE INDEX windlass_execution_tenant ON windlass_execution (tenant, id);
CREATE INDEX windlass_execution_pipeline ON windlass_execution (tenant, pipeline, id);
CREATE INDEX windlass_execution_open ON windlass_execution (pipeline, pipeline_version, id) WHERE status = 'OPEN';
CREATE INDEX windlass_execution_ended ON windlass_execution (status, updated_at, id) WHERE status <> 'OPEN';

-- One row per transition of an execution, and the value that it made: the key itself forbids two commits for one version.
CREATE TABLE windlass_transition (
    execution_id text NOT NULL,
    version      integer NOT NULL,
    at           integer NOT NULL,
    kind         text NOT NULL, -- submitted, step, chunk, staged, retry, parked, paused, resumed, redriven, ended
    step         integer NOT NULL,
    attempt      integer NOT NULL,
    stage        integer NOT NULL,
    node         text,
    fence        integer,
    run_us       integer,
    error_class  text,
    error        text,
    type         integer,      -- number of the value's type in the definition
    value        text,
    PRIMARY KEY (execution_id, version)
) WITHOUT ROWID;

-- The items of an execution after an expansion. Paths sort as text in the order of the expansion, children behind their parent.
CREATE TABLE windlass_item (
    execution_id text NOT NULL,
    stage        integer NOT NULL,
    path         text NOT NULL,
    status       integer NOT NULL, -- 0 ready, 1 waits for its retry, 2 done, 4 rejected, 5 failed, 6 expanded
    cursor       integer NOT NULL, -- index of the step that it is given to next
    version      integer NOT NULL,
    attempt      integer NOT NULL,
    emitted      integer NOT NULL,
    last_hash    text,
    due          integer,
    type         integer NOT NULL,
    value        text,
    error_class  text,
    error        text,
    PRIMARY KEY (execution_id, stage, path)
) WITHOUT ROWID;

-- A range of items that one job works off. Without a job it waits for another one of its segment to end.
CREATE TABLE windlass_part (
    execution_id text NOT NULL,
    stage        integer NOT NULL,
    segment      integer NOT NULL,         -- index of the first step that it runs
    lo           text NOT NULL, -- the first path of its range
    hi           text NOT NULL, -- the first path behind it
    job_id       text,
    trying       text,          -- after a crash: the item that is run alone
    PRIMARY KEY (execution_id, stage, segment, lo)
) WITHOUT ROWID;
CREATE INDEX windlass_part_job ON windlass_part (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX windlass_part_waiting ON windlass_part (execution_id, stage, segment, lo) WHERE job_id IS NULL;
CREATE INDEX windlass_part_live ON windlass_part (execution_id, stage, segment) WHERE job_id IS NOT NULL;

-- Items that were given up while their execution went on. One row for each, however often its step runs again.
CREATE TABLE windlass_reject (
    execution_id text NOT NULL,
    step         integer NOT NULL,
    item         text NOT NULL, -- the item's path; in a stream: fingerprint and occurrence
    id           text NOT NULL,
    tenant       text NOT NULL,
    pipeline     text NOT NULL,
    step_name    text NOT NULL,
    fingerprint  text NOT NULL,
    error_class  text NOT NULL,
    envelope     text NOT NULL,
    payload      text,
    type         integer,
    redriven_as  text,
    at           integer NOT NULL,
    PRIMARY KEY (execution_id, step, item)
) WITHOUT ROWID;
CREATE UNIQUE INDEX windlass_reject_id ON windlass_reject (id);
CREATE INDEX windlass_reject_at ON windlass_reject (at, id);
CREATE INDEX windlass_reject_fingerprint ON windlass_reject (fingerprint, at, id);
CREATE INDEX windlass_reject_error ON windlass_reject (error_class, at, id);
CREATE INDEX windlass_reject_step ON windlass_reject (pipeline, step_name, at, id);
CREATE INDEX windlass_reject_pipeline ON windlass_reject (pipeline, at, id);
CREATE INDEX windlass_reject_execution ON windlass_reject (execution_id, at, id);
CREATE INDEX windlass_reject_tenant ON windlass_reject (tenant, at, id);

-- Definitions that nodes have had, for those who look at executions without the code.
CREATE TABLE windlass_pipeline (
    name       text NOT NULL,
    version    text NOT NULL,
    hash       text NOT NULL,
    definition text NOT NULL,
    seen_at    integer NOT NULL,
    PRIMARY KEY (name, version, hash)
) WITHOUT ROWID;

ALTER TABLE windlass_dead_letter ADD COLUMN kind text NOT NULL DEFAULT 'job'; -- job or execution
ALTER TABLE windlass_dead_letter ADD COLUMN tenant text NOT NULL DEFAULT 'default';
CREATE INDEX windlass_dead_letter_of_kind ON windlass_dead_letter (hidden, kind, created_at, job_id);
