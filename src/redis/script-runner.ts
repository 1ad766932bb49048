import type { Redis } from 'ioredis';
import { CarillonError } from '../domain/errors.js';
import { readScript, type Script, type ScriptChoices, type ScriptFlag } from './script-source.js';

/** A raw reply: integers, binary strings, lists of both. */
export type Reply = number | Buffer | null | Reply[];
export type ScriptArgument = string | number | Buffer;

/**
 * Runs our scripts: EVALSHA, and EVAL once when the server does not have the text (a restart, a failover, SCRIPT
 * FLUSH). Calls may be made side by side, which pipelines them; never inside MULTI.
 */
export class ScriptRunner {
  readonly #scripts = new Map<string, Script>();

  constructor(
    readonly client: Redis,
    private readonly choices: ScriptChoices = {},
  ) {}

  /** @throws whatever Redis or the connection answers, as a CarillonError where it has a meaning of its own. */
  async run(
    name: string,
    flag: ScriptFlag,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<Reply[]> {
    const variant = this.#script(name).variants[flag];
    if (variant === undefined)
      throw new CarillonError('BAD_SCRIPT', `lua/${name}.lua is not made for ${flag}`);
    const rest = [keys.length, ...keys, ...args];
    try {
      return (await this.client.callBuffer('EVALSHA', variant.sha, ...rest)) as Reply[];
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    }
    return (await this.client.callBuffer('EVAL', variant.text, ...rest)) as Reply[];
  }

  #script(name: string): Script {
    let script = this.#scripts.get(name);
    if (script === undefined) {
      script = readScript(name, this.choices);
      this.#scripts.set(name, script);
    }
    return script;
  }
}
