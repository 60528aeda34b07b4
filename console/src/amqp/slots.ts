/** A limit on what is under way at once; callers beyond it wait in their order. */
export class Slots {
  private free: number;
  private readonly waiting: (() => void)[] = [];

  constructor(count: number) {
    this.free = count;
  }

  /** Take a slot, after waiting for a free one if there is none. */
  async acquire(): Promise<void> {
    if (this.free > 0) {
      this.free -= 1;
      return;
    }
    await new Promise<void>((resume) => this.waiting.push(resume));
  }

  /** Return a slot; the caller that has waited longest takes it. */
  release(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.free += 1;
    else next();
  }
}
