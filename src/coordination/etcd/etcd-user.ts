import { InterceptingCall, type Interceptor, type StatusObject } from '@grpc/grpc-js';
import type { Etcd3 } from 'etcd3';

const EXPIRED = 'the token of the etcd user has expired';

/**
 * Signs calls in as a user of etcd. etcd3's own way opens a connection for each sign-in that nobody closes, and asks for
 * ever with a token that has expired.
 */
export class EtcdUser {
  #token: Promise<string> | undefined;

  constructor(
    private readonly name: string,
    private readonly password: string,
  ) {}

  /** What makes a call that of the user, signing in first where that was not done yet. */
  async interceptors(member: Etcd3, deadline: number): Promise<Interceptor[]> {
    this.#token ??= member.auth
      .authenticate({ name: this.name, password: this.password }, { deadline })
      .then(({ token }) => token);
    const signingIn = this.#token;
    try {
      return [withToken(await signingIn)];
    } catch (error) {
      if (this.#token === signingIn) this.#token = undefined;
      throw error;
    }
  }

  /** Whether a call failed for its token only: it is worth a second one, which signs in anew. */
  hasExpired(error: unknown): boolean {
    const expired = error instanceof Error && error.message.includes(EXPIRED);
    if (expired) this.forget();
    return expired;
  }

  /** The next call signs in anew. */
  forget(): void {
    this.#token = undefined;
  }
}

function withToken(token: string): Interceptor {
  return (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start: (metadata, _listener, next) => {
        metadata.set('token', token);
        next(metadata, { onReceiveStatus: (status, pass) => pass(renamed(status)) });
      },
    });
}

/** Under another name than the one on which etcd3 repeats the call for ever. */
function renamed(status: StatusObject): StatusObject {
  return status.details.includes('invalid auth token') ? { ...status, details: EXPIRED } : status;
}
