import { seededRandom } from '../../property/seeded-random.js';
import { offsetChanges } from '../../property/wall-clock-matcher.js';
import { compareStretch, ODD_ZONES } from '../../property/zone-stretch.js';
import { corpusQuestions, cronCases, fireTexts } from './corpus.js';

// Run with TZ set: answers every question of the corpus, compares odd zones with a walk over the minutes around their
// changes of 2026, and prints what went wrong, with the host zone it saw.
const DAY = 86_400_000;
const wrong: unknown[] = [];
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
const random = seededRandom(1);
let walked = 0;
for (const tz of ODD_ZONES) {
  for (const change of offsetChanges(tz, Date.UTC(2026, 0, 1), Date.UTC(2027, 0, 1))) {
    const comparison = compareStretch(tz, change - DAY, change + DAY, random);
    walked += comparison.seen;
    wrong.push(...comparison.wrong);
  }
}
const hostZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
process.stdout.write(JSON.stringify({ hostZone, hour: new Date(0).getHours(), asked, walked, wrong }));
