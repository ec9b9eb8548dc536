// The SQL that pg-boss makes, as JSON by name: its own functions write it, none of it stands here.
// node pg_boss.mjs FOLDER, in which npm has installed the package.
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

const dist = join(process.argv[2], 'node_modules', 'pg-boss', 'dist')
const boss = await import(pathToFileURL(join(dist, 'index.js')))
const plans = await import(pathToFileURL(join(dist, 'plans.js')))
const schema = 'pgboss'
const options = { policy: 'standard', partition: true }
const table = 'TABLE'
const fetched = plans.fetchNextJob({ schema, table, name: 'QUEUE', policy: 'standard', limit: 1 })
console.log(JSON.stringify({
  schema: boss.getConstructionPlans(schema),
  'create-queue': plans.createQueue(schema, 'QUEUE', options),
  insert: plans.insertJobs(schema, { table, name: 'QUEUE' }),
  fetch: typeof fetched === 'string' ? fetched : fetched.text,
  complete: plans.completeJobs(schema, table, false, false)
}))
