# frozen_string_literal: true

module Bunraku
  # Notes what modules' Ruby asks the file system: a result is the same only as long as these answers are.
  module Reads
    { exist?: 'exists', exists?: 'exists', directory?: 'folder' }.each do |method, kind|
      next unless File.respond_to?(method)

      define_method(method) { |path| super(path).tap { |answer| Bunraku.desk&.note_read(kind, path, answer) } }
    end

    def read(path, *place, **options)
      super.tap { |text| Bunraku.desk&.note_read('content', path, Digest::SHA256.hexdigest(text)) }
    rescue SystemCallError
      Bunraku.desk&.note_read('exists', path, false)
      raise
    end
  end
  File.singleton_class.prepend(Reads)
end
