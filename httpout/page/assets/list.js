// A list of any length of which only what can be seen is in the document: rows
// have one height, and those that scroll out are used again for others.

const SPARE = 6; // rows kept ready above and below

export class List {
  // makeRow() returns an element; fillRow(row, item, selected) makes it show one.
  constructor(box, rowHeight, makeRow, fillRow) {
    Object.assign(this, { box, rowHeight, makeRow, fillRow, items: [], rows: new Map(), free: [], selected: null });
    this.space = document.createElement("div");
    this.space.className = "rows";
    box.append(this.space);
    box.addEventListener("scroll", () => this.soon(), { passive: true });
    this.resizing = new ResizeObserver(() => this.soon());
    this.resizing.observe(box);
  }

  close() {
    this.resizing.disconnect();
    cancelAnimationFrame(this.frame);
  }

  show(items) {
    this.items = items;
    this.space.style.height = `${items.length * this.rowHeight}px`;
    this.again();
  }

  select(item, { scroll = true } = {}) {
    this.selected = item;
    const index = this.items.indexOf(item);
    if (scroll && index >= 0) {
      const top = index * this.rowHeight, { scrollTop, clientHeight } = this.box;
      if (top < scrollTop) this.box.scrollTop = top;
      else if (top + this.rowHeight > scrollTop + clientHeight) this.box.scrollTop = top + this.rowHeight - clientHeight;
    }
    this.again();
  }

  // again fills every row anew.
  again() {
    for (const row of this.rows.values()) this.give(row);
    this.rows.clear();
    this.draw();
  }

  soon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.rowHeight) - SPARE);
    const last = Math.min(this.items.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.rowHeight) + SPARE);
    for (const [index, row] of this.rows) {
      if (index < first || index >= last) {
        this.rows.delete(index);
        this.give(row);
      }
    }
    for (let index = first; index < last; index++) {
      if (this.rows.has(index)) continue;
      const row = this.free.pop() ?? this.makeRow();
      row.style.transform = `translateY(${index * this.rowHeight}px)`;
      row.hidden = false;
      this.fillRow(row, this.items[index], this.items[index] === this.selected);
      if (!row.isConnected) this.space.append(row);
      this.rows.set(index, row);
    }
  }

  give(row) {
    row.hidden = true;
    this.free.push(row);
  }
}
