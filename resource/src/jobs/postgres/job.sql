-- Returns the state of a job, or no row if there is none of that number. $1 {id}.
SELECT jsonb_build_object('queue', queue, 'state', state, 'token', token, 'progress', progress)::text
FROM queue_job WHERE id = ($1::text::jsonb ->> 'id')::bigint
