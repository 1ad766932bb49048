const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
/** What a shell expects of a process that a signal ended. */
const CODES = { SIGTERM: 143, SIGINT: 130 } as const;

/** A wait for the person, or the process manager, who wants it to end. */
export interface Stopping {
  readonly asked: Promise<void>;
  readonly wasAsked: boolean;
  /** Everything is given back: signals mean again what they always do. */
  done(): void;
}

let serving = 0;

/** Whether this process serves until somebody stops it, and has things to give back then. */
export function servesUntilSignal(): boolean {
  return serving > 0;
}

/** The first signal asks; a second one ends the process at once. */
export function untilSignal(): Stopping {
  serving++;
  let wasAsked = false;
  let tell: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const heard = (signal: (typeof SIGNALS)[number]) => {
    if (wasAsked) process.exit(CODES[signal]);
    wasAsked = true;
    tell();
  };
  for (const signal of SIGNALS) process.on(signal, heard);
  return {
    asked,
    get wasAsked() {
      return wasAsked;
    },
    done() {
      serving--;
      for (const signal of SIGNALS) process.off(signal, heard);
    },
  };
}
