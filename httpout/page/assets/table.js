// Keeps rows for things that come and go: one element each, by key, in order.

export class Rows {
  // make(key) returns {element, ...}; fill(row, item) makes it show the item.
  constructor(box, make, fill) {
    Object.assign(this, { box, make, fill, rows: new Map() });
  }

  show(items, keyOf) {
    const left = new Set(this.rows.keys());
    let before = null;
    for (const item of items) {
      const key = keyOf(item);
      left.delete(key);
      let row = this.rows.get(key);
      if (!row) this.rows.set(key, row = this.make(key));
      this.fill(row, item);
      const next = before ? before.nextSibling : this.box.firstChild;
      if (next !== row.element) this.box.insertBefore(row.element, next);
      before = row.element;
    }
    for (const key of left) {
      this.rows.get(key).element.remove();
      this.rows.delete(key);
    }
  }
}
