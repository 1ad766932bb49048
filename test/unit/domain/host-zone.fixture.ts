import { corpusQuestions, cronCases, fireTexts } from './corpus.js';

// Run with TZ set: answers every question of the corpus and prints what went wrong, with the host zone it saw.
const wrong: string[] = [];
let asked = 0;
for (const { id, definition, after, expected } of corpusQuestions()) {
  asked += 1;
  if (fireTexts(definition, after, 5).join(' ') !== expected.join(' ')) wrong.push(id);
}
for (const row of cronCases()) {
  asked += 1;
  const times = fireTexts({ cron: row.expr, tz: row.tz }, row.after, row.expected.length);
  if (times.join(' ') !== row.expected.join(' ')) wrong.push(`${row.entry} ${row.case}`);
}
const hostZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
process.stdout.write(JSON.stringify({ hostZone, hour: new Date(0).getHours(), asked, wrong }));
