import type { CalendarStore } from '../redis/calendar-store.js';
import type { LeaderScripts, OwnedRange } from '../redis/leader-scripts.js';
import type { Logger } from '../support/logger.js';
import { RepeatedTask } from '../support/repeated-task.js';

const REST = 60_000;
/** How long a generated id guards against re-sends, ms. */
const SHORT_WINDOW = 600_000;
const HISTORY = 7 * 86_400_000;

/**
 * Once a minute: brings far timers within sight of the heads, ages the duplicate windows and the history, and finishes
 * what clients began that changed a calendar.
 */
export class Housekeeper extends RepeatedTask {
  constructor(
    private readonly scripts: LeaderScripts,
    private readonly calendars: CalendarStore,
    private readonly owned: () => OwnedRange[],
    /** ms; the longest duplicate window that a producer may ask for. */
    private readonly duplicateWindow: number,
    logger: Logger,
  ) {
    super('housekeeper', REST, logger);
  }

  protected override async work(): Promise<void> {
    const owned = this.owned();
    if (owned.length === 0) return;
    await this.scripts.refreshHeads(owned);
    await this.scripts.rotateSpent(this.duplicateWindow, SHORT_WINDOW, HISTORY);
    await this.calendars.settleAll();
  }
}
