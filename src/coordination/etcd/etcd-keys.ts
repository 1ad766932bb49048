/**
 * Every key that coordination writes in etcd, built and read here and nowhere else. Values are UTF-8 JSON. Names of
 * users stand in them with `/` and `%` escaped, so that no name reaches into another's keys.
 */
export class EtcdKeys {
  /** What all keys of the namespace begin with. */
  readonly prefix: string;

  constructor(namespace: string) {
    this.prefix = `/carillon/${escaped(namespace)}/`;
  }

  /** `{ number, id }`: what tokens are ordered within. Written once; raised by `fence adopt`. */
  get epoch(): string {
    return `${this.prefix}epoch`;
  }

  /** `{ partitions, pinned }`. Each acquisition compares its revision. */
  get layout(): string {
    return `${this.prefix}layout`;
  }

  /** What an instance tells of itself, under its lease. */
  member(instanceId: string): string {
    return `${this.prefix}members/${escaped(instanceId)}`;
  }

  /** Who leads partition `n` of `count`, under the leader's lease. Never rewritten: its create revision is the token. */
  partition(count: number, n: number): string {
    return `${this.prefix}partitions/${count}/${n}`;
  }

  /** The last term of a partition that ended, and why. */
  handOver(count: number, n: number): string {
    return `${this.prefix}last/${count}/${n}`;
  }

  /** An operator's word that an instance shall hand over and take nothing. */
  drain(instanceId: string): string {
    return `${this.prefix}drain/${escaped(instanceId)}`;
  }

  /** What a key under the prefix is, or undefined for one that is none of ours. */
  parse(key: string): ParsedKey | undefined {
    const [kind = '', first, second, ...more] = key.slice(this.prefix.length).split('/');
    if (more.length > 0) return undefined;
    if ((kind === 'epoch' || kind === 'layout') && first === undefined) return { kind };
    if (first === undefined) return undefined;
    if ((kind === 'members' || kind === 'drain') && second === undefined)
      return { kind, instanceId: unescaped(first) };
    if ((kind === 'partitions' || kind === 'last') && /^\d+$/.test(`${first}${second}`))
      return { kind, count: Number(first), n: Number(second) };
    return undefined;
  }
}

export type ParsedKey =
  | { kind: 'epoch' | 'layout' }
  | { kind: 'members' | 'drain'; instanceId: string }
  | { kind: 'partitions' | 'last'; count: number; n: number };

function escaped(name: string): string {
  return name.replace(/[%/]/g, (character) => (character === '/' ? '%2F' : '%25'));
}

function unescaped(name: string): string {
  return name.replaceAll('%2F', '/').replaceAll('%25', '%');
}
